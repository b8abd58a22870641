//! What a reader copies from a page: the files of a section, each as a line with its name in backticks and the block below
//! it, the commands of its other blocks of `sh`, and the lines of its blocks of `text`.

/// A section of a page, under a heading of the second level.
pub struct Section {
    pub title: String,
    /// Files by their names, in their order.
    pub files: Vec<(String, String)>,
    /// The lines of the blocks of `sh` that are no file.
    pub commands: String,
    /// The lines of the blocks of `text`.
    pub shown: Vec<String>,
}

impl Section {
    /// Whether a command asks something outside, and does not play it.
    pub fn calls_out(&self) -> bool {
        self.commands.lines().any(|line| line.starts_with("loopctl run") && !line.contains("--script"))
            || self.commands.contains("--on-pause")
    }
}

/// The sections of a page, in their order.
pub fn sections(page: &str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut named: Option<String> = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            found.push(Section {
                title: title.to_owned(),
                files: Vec::new(),
                commands: String::new(),
                shown: Vec::new(),
            });
        } else if let Some(language) = line.strip_prefix("```") {
            let body: String =
                lines.by_ref().take_while(|line| !line.starts_with("```")).flat_map(|line| [line, "\n"]).collect();
            let Some(section) = found.last_mut() else { continue };
            match (named.take(), language) {
                (Some(name), _) => section.files.push((name, body)),
                (None, "sh") => section.commands.push_str(&body),
                (None, "text") => section.shown.extend(body.lines().map(str::to_owned)),
                (None, _) => {}
            }
        } else if let Some(name) = line.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
            named = Some(name.to_owned());
        } else if !line.is_empty() {
            named = None;
        }
    }
    found
}
