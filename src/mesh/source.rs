//! Reads a declaration's files: `mesh.toml`, then every `mesh.d/*.toml` in order of name.
//!
//! Bounds: a file has at most 8 MiB, all together at most 64 MiB, and there are at most 1,000. Only
//! regular files are opened: a pipe would never end.

use std::cell::OnceCell;
use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Position};
use super::place::{Place, Problem};
use crate::words::Digest;

/// The file that every declaration has.
pub(super) const MAIN: &str = "mesh.toml";
/// The folder with the rest of it.
pub(super) const FOLDER: &str = "mesh.d";

const MIB: u64 = 1024 * 1024;
const LARGEST_FILE: u64 = 8 * MIB;
const LARGEST_WHOLE: u64 = 64 * MIB;
const MOST_FILES: usize = 1000;
/// How many errors one run shows: more than anybody reads, few enough to keep.
const MOST_ERRORS: usize = 1000;

/// A file of the declaration.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the declaration's folder.
    pub path: Utf8PathBuf,
    /// Its text; what is not UTF-8 is replaced.
    pub text: String,
    /// The first byte that is not UTF-8.
    pub not_utf8: Option<usize>,
    line_starts: OnceCell<Vec<usize>>,
}

/// All files of a declaration.
#[derive(Debug)]
pub(super) struct Sources {
    folder: Utf8PathBuf,
    /// In the order in which they count.
    pub files: Vec<Source>,
    /// Of all their bytes.
    pub digest: Digest,
}

impl Sources {
    /// Reads all files of the declaration in `folder`.
    pub fn read(folder: &Utf8Path) -> Result<Self, Diagnostics> {
        let mut paths = vec![Utf8PathBuf::from(MAIN)];
        let mut errors = Vec::new();
        // What exists but cannot be seen is reported as unreadable below.
        if folder.join(MAIN).try_exists().is_ok_and(|exists| !exists) {
            return Err(Diagnostics::one(Diagnostic {
                kind: DiagnosticKind::Missing,
                file: shown(folder, Utf8Path::new(MAIN)),
                at: None,
                message: "there is no declaration here".into(),
                help: Some(
                    "`grid init` writes one to start from; `--mesh DIR` names another folder"
                        .into(),
                ),
            }));
        }
        match list(folder) {
            Ok(more) => paths.extend(more),
            Err((path, message)) => errors.push(unreadable(folder, &path, message)),
        }
        let mut files = Vec::with_capacity(paths.len());
        let mut framed = Vec::new();
        let mut left = LARGEST_WHOLE;
        for path in paths {
            match read_file(&folder.join(&path), left) {
                Ok(bytes) => {
                    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    left = left.saturating_sub(size);
                    framed.extend_from_slice(format!("{path}\0{size}\0").as_bytes());
                    framed.extend_from_slice(&bytes);
                    files.push(Source::new(path, bytes));
                }
                Err(message) => errors.push(unreadable(folder, &path, message)),
            }
        }
        if errors.is_empty() {
            Ok(Self {
                folder: folder.to_owned(),
                files,
                digest: Digest::of(&framed),
            })
        } else {
            Err(Diagnostics { errors, omitted: 0 })
        }
    }

    /// How a file is named to people.
    pub fn shown(&self, file: usize) -> String {
        self.files
            .get(file)
            .map(|source| shown(&self.folder, &source.path))
            .unwrap_or_default()
    }

    /// The file of a place as it is named to people, and where in it.
    pub fn at(&self, place: Place) -> (String, Option<Position>) {
        let source = self.files.get(place.file);
        let at = source.map(|source| source.position(place, false));
        (self.shown(place.file), at)
    }

    /// `FILE:LINE` of a place, for a message that names another one.
    pub fn reference(&self, place: Place) -> String {
        let line = self
            .files
            .get(place.file)
            .map_or(1, |source| source.line_of(place.start).0);
        format!("{}:{line}", self.shown(place.file))
    }

    /// The problems as they are shown: in order of place, each once.
    pub fn diagnostics(&self, mut problems: Vec<Problem>) -> Diagnostics {
        problems.sort_by(|a, b| (a.place, &a.message).cmp(&(b.place, &b.message)));
        problems.dedup();
        let omitted = problems.len().saturating_sub(MOST_ERRORS);
        problems.truncate(MOST_ERRORS);
        let errors = problems
            .into_iter()
            .map(|problem| Diagnostic {
                kind: problem.kind,
                file: self.shown(problem.place.file),
                at: self
                    .files
                    .get(problem.place.file)
                    .map(|source| source.position(problem.place, problem.hidden)),
                message: problem.message,
                help: problem.help,
            })
            .collect();
        Diagnostics { errors, omitted }
    }
}

impl Source {
    fn new(path: Utf8PathBuf, bytes: Vec<u8>) -> Self {
        let (text, not_utf8) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(wrong) => (
                String::from_utf8_lossy(wrong.as_bytes()).into_owned(),
                Some(wrong.utf8_error().valid_up_to()),
            ),
        };
        Self {
            path,
            text,
            not_utf8,
            line_starts: OnceCell::new(),
        }
    }

    /// The number of the line (from 1) in which a byte stands, and that line's first byte.
    fn line_of(&self, at: usize) -> (usize, usize) {
        let starts = self.line_starts.get_or_init(|| {
            std::iter::once(0)
                .chain(
                    self.text
                        .bytes()
                        .enumerate()
                        .filter(|(_, byte)| *byte == b'\n')
                        .map(|(index, _)| index.saturating_add(1)),
                )
                .collect()
        });
        let number = starts.partition_point(|start| *start <= at).max(1);
        let start = starts.get(number.saturating_sub(1)).copied().unwrap_or(0);
        (number, start)
    }

    fn position(&self, place: Place, hidden: bool) -> Position {
        let (number, line_start) = self.line_of(place.start);
        let line = self
            .text
            .get(line_start..)
            .and_then(|rest| rest.lines().next())
            .unwrap_or("");
        let position = Position::new(
            number,
            line,
            place.start.saturating_sub(line_start),
            place.end.saturating_sub(line_start),
        );
        if hidden {
            position.without_values()
        } else {
            position
        }
    }
}

fn shown(folder: &Utf8Path, path: &Utf8Path) -> String {
    if folder == "." || folder == "" {
        path.to_string()
    } else {
        folder.join(path).to_string()
    }
}

fn unreadable(folder: &Utf8Path, path: &Utf8Path, message: String) -> Diagnostic {
    Diagnostic {
        kind: DiagnosticKind::Unreadable,
        file: shown(folder, path),
        at: None,
        message,
        help: None,
    }
}

/// The files of `mesh.d`, in order of name. Hidden ones are left out: editors keep locks there.
fn list(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, (Utf8PathBuf, String)> {
    let relative = Utf8Path::new(FOLDER);
    let wrong = |path: &Utf8Path, cause: String| (path.to_owned(), cause);
    let entries = match folder.join(relative).read_dir_utf8() {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(wrong(relative, format!("cannot be read: {cause}"))),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|cause| wrong(relative, format!("cannot be read: {cause}")))?;
        let name = entry.file_name();
        if name.starts_with('.') || Utf8Path::new(name).extension() != Some("toml") {
            continue;
        }
        if name.chars().any(char::is_control) {
            return Err(wrong(
                relative,
                format!("a file's name has a control character: {name:?}"),
            ));
        }
        paths.push(relative.join(name));
        if paths.len() >= MOST_FILES {
            return Err(wrong(
                relative,
                format!("a declaration has at most {MOST_FILES} files"),
            ));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads a whole file, or says why not.
fn read_file(path: &Utf8Path, left: u64) -> Result<Vec<u8>, String> {
    let failed = |cause: std::io::Error| format!("cannot be read: {cause}");
    // Looked at before it is opened: opening a pipe waits for whoever writes to it.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err("is not a file".into());
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let limit = LARGEST_FILE.min(left);
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) <= limit {
        Ok(bytes)
    } else if limit == LARGEST_FILE {
        Err(format!(
            "is too large: a file of a declaration has at most {} MiB",
            LARGEST_FILE / MIB
        ))
    } else {
        Err(format!(
            "is too much: a declaration has at most {} MiB in all",
            LARGEST_WHOLE / MIB
        ))
    }
}
