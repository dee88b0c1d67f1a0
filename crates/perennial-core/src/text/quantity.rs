//! Numbers -> text for people, with the right form of the noun.

/// `2,341`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `3 pages`, `1 page`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_thousands_are_grouped() {
        assert_eq!([0, 999, 1_000, 77_527].map(grouped), ["0", "999", "1,000", "77,527"]);
        let pages = |n| counted(n, "page", "pages");
        assert_eq!(
            [pages(0), pages(1), pages(2), pages(1_234_567)],
            ["0 pages", "1 page", "2 pages", "1,234,567 pages"]
        );
    }
}
