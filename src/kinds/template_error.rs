//! Why a template of the operator's does not render.

use std::fmt;

use super::missing::{Found, Missing};

/// Why a template does not render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// Which: its path, relative to the declaration, or a setting of the declaration.
    pub template: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// Why; it holds no secret.
    pub why: String,
    /// What it asked for in vain, where that is known.
    pub missing: Option<Box<Missing>>,
    /// What else is asked for in vain there, or in what it includes; each has no more of its own.
    pub more: Vec<TemplateError>,
    /// What to do about it, as a clause, where it is not the template that is wrong.
    pub remedy: Option<String>,
}

impl TemplateError {
    /// Of a template, for a reason that is no missing name.
    #[must_use]
    pub fn new(template: impl Into<String>, line: Option<usize>, why: impl Into<String>) -> Self {
        Self {
            template: template.into(),
            line,
            why: why.into(),
            missing: None,
            more: Vec::new(),
            remedy: None,
        }
    }

    /// Of all that was asked for in vain, if it was anything; `remark` is said after each.
    #[must_use]
    pub fn of_missing(found: Vec<Found>, remark: impl Fn(&Missing) -> String) -> Option<Self> {
        let kind = minijinja::ErrorKind::UndefinedError;
        let all = found.into_iter().map(|found| {
            let missing = found.missing;
            let why = format!("{kind}: {missing}{}", remark(&missing));
            Self {
                missing: Some(Box::new(missing)),
                ..Self::new(found.template, found.line, why)
            }
        });
        Self::together(all)
    }

    /// Several as one, if there is any.
    #[must_use]
    pub fn together(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all = all.into_iter().flat_map(Self::apart);
        let mut first = all.next()?;
        first.more = all.collect();
        Some(first)
    }

    /// Each by itself.
    #[must_use]
    pub fn apart(mut self) -> Vec<Self> {
        let more = std::mem::take(&mut self.more);
        std::iter::once(self).chain(more).collect()
    }

    /// Where it is to be mended.
    #[must_use]
    pub fn place(&self) -> String {
        let mut places: Vec<(&str, Vec<usize>)> = Vec::new();
        for wrong in std::iter::once(self).chain(&self.more) {
            let at = places
                .iter()
                .position(|(template, _)| *template == wrong.template);
            match at.and_then(|at| places.get_mut(at)) {
                Some((_, lines)) => lines.extend(wrong.line),
                None => places.push((&wrong.template, wrong.line.into_iter().collect())),
            }
        }
        let places = places.into_iter().map(|(template, mut lines)| {
            lines.sort_unstable();
            lines.dedup();
            let word = match lines.len() {
                0 => return template.to_owned(),
                1 => "line",
                _ => "lines",
            };
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            format!("{template} ({word} {})", lines.join(", "))
        });
        places.collect::<Vec<_>>().join(" and ")
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.template)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.why)?;
        for more in &self.more {
            write!(f, "; and {more}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TemplateError {}
