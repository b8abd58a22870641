//! Values are readable at every width, and show how much they leave out.

use super::*;
use serde_json::json;

#[test]
fn what_fits_is_on_one_line_and_the_rest_is_broken() {
    let value = json!({"rows": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}], "empty": [], "row_count": 2});
    assert_eq!(
        on_one_line(&value),
        r#"{"rows": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}], "empty": [], "row_count": 2}"#
    );
    assert_eq!(
        laid_out(&value, 40),
        r#"{
  "rows": [
    {"id": 1, "name": "one"},
    {"id": 2, "name": "two"}
  ],
  "empty": [],
  "row_count": 2
}"#
    );
}

#[test]
fn what_is_laid_out_means_the_same() {
    let value: Value =
        serde_json::from_str(r#"{"n":12345678901234567890.50,"t":"\u0001\"é","l":[null,true,{}]}"#).unwrap();
    for width in [0, 10, 30, usize::MAX] {
        assert_eq!(serde_json::from_str::<Value>(&laid_out(&value, width)).unwrap(), value);
    }
}

#[test]
fn a_gist_keeps_the_shape_and_counts_what_is_left_out() {
    let rows: Vec<Value> = (0..40).map(|id| json!({"id": id, "body": "lorem ipsum ".repeat(20)})).collect();
    let value = json!({"rows": rows, "row_count": 40});
    let short = gist(&value, 200);
    assert!(short.width() <= 200 && short.contains("lorem ipsum") && short.contains('…'), "{short}");
    assert!(short.ends_with(" more], \"row_count\": 40}"), "{short}");
    assert_eq!(gist(&json!({"id": 1}), 200), r#"{"id": 1}"#);
    assert_eq!(gist(&json!("x".repeat(500)), 100), format!("\"{}…\"", "x".repeat(80)));
}

#[test]
fn a_gist_of_rows_keeps_the_first_row_and_what_stands_after_them() {
    let row = json!({"charge_id": "ch_1", "invoice_id": "INV-1", "status": "succeeded"});
    let short = gist(&json!({"rows": vec![row; 4], "row_count": 4}), 130);
    assert_eq!(
        short,
        r#"{"rows": [{"charge_id": "ch_1", "invoice_id": "INV-1", "status": "succeeded"}, … 3 more], "row_count": 4}"#
    );
}
