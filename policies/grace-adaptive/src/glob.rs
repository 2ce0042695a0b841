//! Patterns for method names.

/// Whether `text` matches `pattern`, in which `*` stands for any text, also for none; all else is literal.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut literals = pattern.as_bytes().split(|byte| *byte == b'*');
    let Some(mut text) = literals.next().and_then(|head| text.as_bytes().strip_prefix(head)) else {
        return false;
    };
    let Some(tail) = literals.next_back() else {
        return text.is_empty();
    };
    // Each literal between two stars takes its first occurrence: that leaves the most text for those after it.
    for literal in literals.filter(|literal| !literal.is_empty()) {
        let Some(at) = text.windows(literal.len()).position(|window| window == literal) else {
            return false;
        };
        text = text.get(at + literal.len()..).unwrap_or_default();
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("a", "a"),
            ("a*", "a"),
            ("*:bash", "m1:bash"),
            ("a*c*e", "abcde"),
            ("a**b", "ab"),
            ("*ab*ab", "abab"),
            ("*ä*", "bär"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn all_else_is_literal_and_the_whole_text_counts() {
        for (pattern, text) in
            [("", "a"), ("a", "ab"), ("a*", "ba"), ("*a", "ab"), ("ab*ba", "aba"), ("a?c", "abc"), ("*ab*ab", "ab")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
