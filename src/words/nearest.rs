//! What a misspelt name was meant to be.

/// The name nearest to `wrong`, if one is near enough to be meant: a third of its letters may differ,
/// but not all of them.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let length = wrong.chars().count();
    names
        .filter_map(|name| {
            let other = name.chars().count();
            let most = 1.max(length.max(other) / 3).min(length.saturating_sub(1));
            if length.abs_diff(other) > most {
                return None; // so that the distance, which costs much more, is not needed
            }
            let distance = strsim::damerau_levenshtein(wrong, name);
            (distance <= most).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_name_has_a_suggestion_and_a_foreign_one_has_none() {
        let names = ["atlas", "borealis"];
        assert_eq!(nearest("atals", names.into_iter()), Some("atlas".into()));
        assert_eq!(nearest("zeus", names.into_iter()), None);
        assert_eq!(nearest("z", ["y"].into_iter()), None);
    }
}
