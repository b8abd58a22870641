//! The published schemas are those of the types, and the examples match them.
use loopctl::language::schema::{KINDS, schema};

#[test]
fn published_schemas_are_those_of_the_types() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for kind in KINDS {
        let path = folder.join(format!("{kind}.json"));
        let text = format!("{:#}\n", schema(kind).unwrap());
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "schemas/{kind}.json is stale; mend it with: UPDATE_SCHEMAS=1 cargo test --test schemas"
        );
    }
}
