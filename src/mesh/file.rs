//! Reads the files of a service.

use toml::de::DeValue;

use super::declaration::{FileContent, FileDeclaration, FilePath};
use super::input::Input;
use super::place::{At, Place, Problem};
use super::raw;
use super::reader::read;
use super::service::Draft;
use crate::words::{AbsolutePath, PathError, ReleasePath};

/// Where a file's parts stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilePlaces {
    /// Its path.
    pub path: Place,
    /// Where its content comes from.
    pub content: Place,
}

/// Reads the files of a service.
pub(super) fn files(draft: &mut Draft<'_>, input: Input<'_>, problems: &mut Vec<Problem>) {
    let DeValue::Array(items) = input.value.get_ref() else {
        problems.push(Problem::new(
            input.place(),
            "`files` is a list of tables",
            format!("write each as `[[services.{}.files]]`", draft.service.name),
        ));
        return;
    };
    for item in items.iter() {
        let item = Input::element(input.file, item);
        let before = problems.len();
        let raw = match item.table("a file") {
            Ok(table) => read::<raw::File>(table, problems),
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        let Some(raw) = raw else { continue };
        if let Some((file, places)) = file(raw, item.key, before, problems) {
            draft.service.files.push(file);
            draft.files.push(places);
        }
    }
}

fn file(
    raw: raw::File,
    place: Place,
    before: usize,
    problems: &mut Vec<Problem>,
) -> Option<(FileDeclaration, FilePlaces)> {
    let path = match raw.path {
        Some(path) => Some(path),
        None => {
            if problems.len() == before {
                problems.push(Problem::new(
                    place,
                    "a file has a `path`",
                    "add `path = \"…\"`: relative, in the service's folder of the release; absolute, installed there",
                ));
            }
            None
        }
    };
    let content = match (raw.template, raw.source, raw.content) {
        (Some(template), None, None) => local(&template, problems)
            .map(|path| (template.place, FileContent::Template(path.as_str().into()))),
        (None, Some(source), None) => local(&source, problems)
            .map(|path| (source.place, FileContent::Source(path.as_str().into()))),
        (None, None, Some(text)) => Some((text.place, FileContent::Inline(text.value))),
        _ => {
            if problems.len() == before {
                problems.push(Problem::new(
                    path.as_ref().map_or(place, |path| path.place),
                    "a file's content is exactly one of `template`, `source` and `content`",
                    "write one of `template = \"…\"`, `source = \"…\"` and `content = \"…\"`",
                ));
            }
            None
        }
    };
    let path = path?;
    let goes_to = if path.value.starts_with('/') {
        AbsolutePath::new(&path.value).map(FilePath::Absolute)
    } else {
        ReleasePath::new(&path.value).map(FilePath::Release)
    };
    let goes_to = goes_to
        .map_err(|wrong| problems.push(Problem::bare(path.place, format!("`path`: {wrong}"))))
        .ok()?;
    let (content_place, content) = content?;
    Some((
        FileDeclaration {
            path: goes_to,
            content,
            mode: raw.mode.map(|mode| mode.0),
            owner: raw.owner.map(|owner| owner.0),
        },
        FilePlaces {
            path: path.place,
            content: content_place,
        },
    ))
}

/// A source file: below the declaration's folder, so that a declaration that is moved, or checked out
/// elsewhere, composes the same.
fn local(path: &At<String>, problems: &mut Vec<Problem>) -> Option<ReleasePath> {
    let place = path.place;
    ReleasePath::new(&path.value)
        .map_err(|wrong| {
            problems.push(match wrong {
                PathError::Root(_) => Problem::new(
                    place,
                    "a source is a path relative to the declaration",
                    "put the file below the declaration's folder: a push from another checkout has to compose the same",
                ),
                PathError::Part => Problem::new(
                    place,
                    "a source lies below the declaration's folder, and has no empty, `.` or `..` part",
                    "put the file below the declaration's folder, and write its path like \"files/x.conf\"",
                ),
                wrong => Problem::bare(place, wrong.to_string()),
            });
        })
        .ok()
}
