//! The search for a secret: in everything that was printed or written, and in the argument lists and environments of all
//! processes. `the_search_for_a_secret_finds_it_in_every_form` proves it.

use std::collections::BTreeSet;
use std::path::Path;

/// Which of `words` stand in the argument list or environment of some process now.
pub fn look(words: &[&str], found: &mut [bool]) {
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(process.path().join(file)).unwrap_or_default();
            for (word, found) in words.iter().zip(found.iter_mut()) {
                *found |= holds(&bytes, word);
            }
        }
    }
}

pub fn holds(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

/// Every form in which a secret could stand somewhere: as it is, and in base64 and hexadecimal.
pub fn forms(secret: &str) -> Vec<Vec<u8>> {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in secret.bytes() {
        write!(hex, "{byte:02x}").unwrap();
    }
    let mut forms = vec![
        secret.as_bytes().to_vec(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
    ];
    // At each of the three places where its first byte may fall among six bits; without what its neighbours decide.
    for skip in 0..3 {
        let text = base64(&[&b"???"[..skip], secret.as_bytes()].concat());
        let from = if skip == 0 { 0 } else { skip + 1 };
        let to = text.trim_end_matches('=').len() - 1;
        forms.push(text.as_bytes()[from..to].to_vec());
    }
    forms
}

pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Everything that is searched, by name.
#[derive(Default)]
pub struct Haystacks(pub Vec<(String, Vec<u8>)>);

impl Haystacks {
    pub fn add(&mut self, name: &str, bytes: Vec<u8>) {
        self.0.push((name.to_owned(), bytes));
    }

    /// Every file below a folder, its name too.
    pub fn add_tree(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                self.add_tree(&path);
            } else {
                let mut bytes = path.display().to_string().into_bytes();
                if kind.is_file() {
                    bytes.extend(std::fs::read(&path).unwrap());
                }
                self.add(&path.display().to_string(), bytes);
            }
        }
    }

    /// Where one of these secrets stands, in whatever form.
    pub fn with(&self, secrets: &[&str]) -> BTreeSet<String> {
        let forms: Vec<Vec<u8>> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        let has = |bytes: &[u8]| {
            forms
                .iter()
                .any(|form| bytes.windows(form.len()).any(|part| part == form))
        };
        let found = self.0.iter().filter(|(_, bytes)| has(bytes));
        found.map(|(name, _)| name.clone()).collect()
    }
}
