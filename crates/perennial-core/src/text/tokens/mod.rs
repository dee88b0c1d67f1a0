//! The text of a page -> its tokens, with work bounded by its length.
//!
//! The tokenizer of html5ever compares every attribute of a tag with all earlier ones. A tag with 200,000 attributes
//! therefore takes as long as a million pages. Here a tag has at most [`MAX_ATTRIBUTES`]; the rest is skipped.
//!
//! Whether a `<` begins a tag depends on the context: it does not inside comments and scripts. Only the tokenizer
//! tracks this context, so the input is fed from `<` to `<`. Text and scripts produce tokens immediately, but a tag
//! only at its end. A tag with too many attributes is fed up to the last allowed one. If no token was produced, it is
//! a tag, and the input is skipped up to its end.
//!
//! If the tokenizer is between two tags and holds nothing back, plain tags and the text after them bypass it
//! (`tokens/plain.rs`). Its state machine is the largest cost of parsing a page.

mod plain;

use std::cell::Cell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use plain::{PlainTags, is_plain_text};

/// Maximum attributes of one tag. Real tags have a few dozen at most.
pub const MAX_ATTRIBUTES: usize = 256;

/// Bytes that are copied for the tokenizer at a time. Texts that are cut from a piece keep all of it in memory.
const PIECE_BYTES: usize = 1 << 20;

/// Feeds all tokens of a page to `sink` and returns it. The sink may request raw text only after the elements for
/// which the standard does.
pub fn read_tokens<S: TokenSink>(html: &str, sink: S, options: TokenizerOpts) -> S {
    let heard =
        CountingSink { sink, n_tokens: Cell::new(0), n_closed: Cell::new(0), is_raw: Cell::new(false) };
    let mut feeder = TokenFeeder {
        tokenizer: Tokenizer::new(heard, options),
        tags: PlainTags::new(),
        is_between: false,
        input: BufferQueue::default(),
        open: PendingMarkup::Nothing,
        piece: StrTendril::new(),
        piece_start: 0,
    };
    let mut at = 0;
    while at < html.len() {
        at = feeder.feed_part(html, at);
    }
    feeder.tokenizer.end();
    feeder.tokenizer.sink.sink
}

/// Counts the tokens on their way to the sink.
struct CountingSink<S> {
    sink: S,
    n_tokens: Cell<u64>,
    /// Tags, comments and document types, which are produced at their end.
    n_closed: Cell<u64>,
    /// Whether the tokenizer is inside a script or a similar element without tags.
    is_raw: Cell<bool>,
}

impl<S: TokenSink> TokenSink for CountingSink<S> {
    type Handle = S::Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<S::Handle> {
        // Errors are reported while a tag is still open.
        if !matches!(token, Token::ParseError(_)) {
            self.n_tokens.set(self.n_tokens.get() + 1);
        }
        let is_tag = matches!(token, Token::TagToken(_));
        if is_tag || matches!(token, Token::CommentToken(_) | Token::DoctypeToken(_)) {
            self.n_closed.set(self.n_closed.get() + 1);
        }
        let result = self.sink.process_token(token, line);
        if is_tag {
            let is_raw = matches!(result, TokenSinkResult::RawData(_) | TokenSinkResult::Plaintext);
            self.is_raw.set(is_raw);
        }
        result
    }

    fn end(&self) {
        self.sink.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.sink.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Feeds the tokenizer and tracks its state.
struct TokenFeeder<S: TokenSink> {
    tokenizer: Tokenizer<CountingSink<S>>,
    tags: PlainTags,
    /// Whether a tag may begin here and the tokenizer holds nothing back.
    is_between: bool,
    input: BufferQueue,
    open: PendingMarkup,
    /// A copy of part of the page, from which the tokenizer's input is cut without further copies.
    piece: StrTendril,
    /// The position of the piece in the page.
    piece_start: usize,
}

/// Markup that began with a `<` and produced no token yet.
#[derive(Clone, Copy)]
enum PendingMarkup {
    /// None: the next `<` may begin a tag.
    Nothing,
    /// A tag, read up to here.
    Tag(TagScan),
    /// A comment, document type or CDATA section, in which no tags begin.
    Other,
}

impl<S: TokenSink> TokenFeeder<S> {
    /// Feeds the input from `at` to the next `<`. Returns where to continue.
    fn feed_part(&mut self, html: &str, at: usize) -> usize {
        let start = html.ceil_char_boundary(at + 1);
        if start > self.piece_start + self.piece.len() {
            let end = html.floor_char_boundary(html.len().min(start + PIECE_BYTES));
            self.piece = StrTendril::from_slice(&html[at..end]);
            self.piece_start = at;
        }
        let limit = self.piece_start + self.piece.len();
        let end = memchr::memchr(b'<', &html.as_bytes()[start..limit]).map_or(limit, |found| start + found);
        if self.is_between && self.feed_plain(html, at, end) {
            return end;
        }
        let n_closed = self.tokenizer.sink.n_closed.get();
        let next = self.feed_other(html, at, end);
        // A part contains one `<`. After a token that was produced at its end only text can follow.
        let heard = &self.tokenizer.sink;
        let has_closed = heard.n_closed.get() > n_closed && !heard.is_raw.get();
        self.is_between = has_closed && !is_held_back(&html[..next]);
        next
    }

    /// Reads a plain tag and the text after it without the tokenizer. Returns whether there is one.
    fn feed_plain(&mut self, html: &str, at: usize, end: usize) -> bool {
        let (part, piece, offset) = (&html[at..end], &self.piece, at - self.piece_start);
        let cut = |from: usize, to: usize| piece.subtendril((offset + from) as u32, (to - from) as u32);
        let Some((tag, length)) = self.tags.read(part, cut) else { return false };
        // A plain tag never changes the state of the tokenizer.
        let _ = self.tokenizer.sink.process_token(Token::TagToken(tag), 1);
        let text = &part.as_bytes()[length..];
        if !is_plain_text(text) {
            self.feed(at + length, end);
            self.is_between = !is_held_back(&html[..end]);
        } else if !text.is_empty() {
            let text = cut(length, part.len());
            let _ = self.tokenizer.sink.process_token(Token::CharacterTokens(text), 1);
        }
        true
    }

    /// Feeds a part to the tokenizer. Returns where to continue.
    fn feed_other(&mut self, html: &str, at: usize, end: usize) -> usize {
        let part = &html[at..end];
        let is_new = matches!(self.open, PendingMarkup::Nothing);
        let tag = match self.open {
            PendingMarkup::Tag(scan) => Some(scan),
            PendingMarkup::Nothing => begins_tag(part).then(TagScan::default),
            PendingMarkup::Other => None,
        };
        let Some(mut scan) = tag else {
            let is_heard = self.feed(at, end);
            let is_left_open = if is_new { is_left_open(part) } else { true };
            self.open = if is_left_open && !is_heard { PendingMarkup::Other } else { PendingMarkup::Nothing };
            return end;
        };
        let mut fed = 0;
        if is_new && may_hold_back(&html[..at]) {
            // Text that was held back is produced with the next character. It does not show whether this is a tag.
            fed = 1;
            self.feed(at, at + fed);
        }
        // Too short for too many attributes. Most tags are produced at once and need no count.
        let is_fed = is_new && part.len() <= MAX_ATTRIBUTES;
        if is_fed && self.feed(at + fed, end) {
            return end;
        }
        let read = scan.read(part.as_bytes());
        let stop = match read {
            TagScanEnd::TooMany(stop) => stop,
            TagScanEnd::Ended | TagScanEnd::Open => part.len(),
        };
        let is_heard = !is_fed && self.feed(at + fed, at + stop);
        self.open = match read {
            _ if is_heard => PendingMarkup::Nothing,
            TagScanEnd::Open => PendingMarkup::Tag(scan),
            TagScanEnd::Ended => PendingMarkup::Other,
            TagScanEnd::TooMany(_) => {
                self.open = PendingMarkup::Nothing;
                return at + stop + scan.rest(&html.as_bytes()[at + stop..]);
            }
        };
        at + stop
    }

    /// Feeds the input between two positions of the current piece. Returns whether it produced a token.
    fn feed(&self, start: usize, end: usize) -> bool {
        let before = self.tokenizer.sink.n_tokens.get();
        let (offset, length) = ((start - self.piece_start) as u32, (end - start) as u32);
        self.input.push_back(self.piece.subtendril(offset, length));
        // The tokenizer stops after each script, because the script could run now. Calling it again continues.
        while !self.input.is_empty() {
            let _ = self.tokenizer.feed(&self.input);
        }
        self.tokenizer.sink.n_tokens.get() > before
    }
}

/// Whether a part begins like a tag: `<a` or `</a`.
fn begins_tag(part: &str) -> bool {
    let name = part.strip_prefix("</").or_else(|| part.strip_prefix('<'));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Whether a part without tokens leaves something open in which no tag begins. A lone `<` does not, and neither do the
/// two complete forms without a token.
fn is_left_open(part: &str) -> bool {
    let is_silent = part.starts_with("</>") || part.starts_with("<![CDATA[") && part.contains("]]>");
    !is_silent && ["<!", "<?", "</"].iter().any(|start| part.starts_with(start))
}

/// Whether the tokenizer may hold back the end of a text until the next character: after a `<`, or after a possible
/// character reference, even a complete one.
fn may_hold_back(before: &str) -> bool {
    let before = before.strip_suffix(';').unwrap_or(before);
    let reference = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '#');
    reference.ends_with('&') || before.ends_with('<')
}

/// Whether the tokenizer may wait for the next character, for example to recognise a two-character line end.
fn is_held_back(before: &str) -> bool {
    may_hold_back(before) || before.ends_with('\r')
}

/// Reads a tag like the tokenizer (HTML standard, 13.2.5.6 to 13.2.5.40) to count its attributes.
#[derive(Clone, Copy, Default)]
struct TagScan {
    place: TagPlace,
    n_attributes: usize,
    is_inside: bool,
}

/// The position of the next byte within a tag.
#[derive(Clone, Copy, Default, PartialEq)]
enum TagPlace {
    #[default]
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
}

/// Why a scan ended.
#[derive(Clone, Copy)]
enum TagScanEnd {
    /// The tag continues after these bytes.
    Open,
    /// The tag ends within these bytes.
    Ended,
    /// The excess attribute begins here.
    TooMany(usize),
}

impl TagScan {
    fn read(&mut self, bytes: &[u8]) -> TagScanEnd {
        // The first byte is the `<` of the tag. Later ones are part of its content.
        let mut at = usize::from(!std::mem::replace(&mut self.is_inside, true));
        while at < bytes.len() {
            if let TagPlace::Quoted(quote) = self.place {
                // Long tags consist mostly of values.
                match memchr::memchr(quote, &bytes[at..]) {
                    Some(found) => at += found,
                    None => return TagScanEnd::Open,
                }
            }
            if !self.step(bytes[at]) {
                return TagScanEnd::Ended;
            }
            if self.n_attributes > MAX_ATTRIBUTES {
                return TagScanEnd::TooMany(at);
            }
            at += 1;
        }
        TagScanEnd::Open
    }

    /// Number of bytes before the end of the tag.
    fn rest(&mut self, bytes: &[u8]) -> usize {
        // The first byte was already processed.
        bytes.iter().skip(1).position(|&byte| !self.step(byte)).map_or(bytes.len(), |found| found + 1)
    }

    /// Processes a byte. Returns whether the tag continues.
    fn step(&mut self, byte: u8) -> bool {
        use TagPlace::*;
        let is_space = matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | b' ');
        self.place = match (self.place, byte) {
            (Quoted(quote), byte) if byte == quote => BeforeName,
            (Quoted(quote), _) => Quoted(quote),
            (_, b'>') => return false,
            (Unquoted, _) if !is_space => Unquoted,
            (BeforeValue, b'"' | b'\'') => Quoted(byte),
            (BeforeValue, _) => {
                if is_space {
                    BeforeValue
                } else {
                    Unquoted
                }
            }
            (Name | AfterName, b'=') => BeforeValue,
            (Name | AfterName, _) if is_space => AfterName,
            (_, b'/') => BeforeName,
            (_, _) if is_space => BeforeName,
            (TagName, _) => TagName,
            (Name, _) => Name,
            (_, _) => {
                self.n_attributes += 1;
                Name
            }
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use html5ever::tokenizer::states::ScriptData;
    use html5ever::tokenizer::{Tag, TagKind};
    use proptest::prelude::*;

    use super::*;

    /// Tags with the number of their attributes, and joined texts.
    #[derive(Default, Debug, PartialEq)]
    struct TokenLog {
        words: Vec<String>,
        most_attributes: usize,
    }

    #[derive(Default)]
    struct Witness(RefCell<TokenLog>);

    impl TokenSink for Witness {
        type Handle = ();

        fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
            let mut seen = self.0.borrow_mut();
            match token {
                Token::TagToken(Tag { kind, name, attrs, .. }) => {
                    seen.most_attributes = seen.most_attributes.max(attrs.len());
                    let names: Vec<String> =
                        attrs.iter().map(|a| format!("{}={}", &*a.name.local, &*a.value)).collect();
                    seen.words.push(format!("{kind:?} {name} {}", names.join(" ")));
                    if kind == TagKind::StartTag && &*name == "script" {
                        return TokenSinkResult::RawData(ScriptData);
                    }
                }
                Token::CharacterTokens(text) => match seen.words.last_mut() {
                    Some(last) if last.starts_with("text ") => last.push_str(&text),
                    _ => seen.words.push(format!("text {text}")),
                },
                Token::CommentToken(text) => seen.words.push(format!("comment {text}")),
                _ => {}
            }
            TokenSinkResult::Continue
        }

        fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
            true
        }
    }

    fn seen(html: &str) -> TokenLog {
        read_tokens(html, Witness::default(), TokenizerOpts::default()).0.into_inner()
    }

    fn seen_unbounded(html: &str) -> TokenLog {
        let tokenizer = Tokenizer::new(Witness::default(), TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(html));
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        tokenizer.end();
        tokenizer.sink.0.into_inner()
    }

    fn attributes(n_attributes: usize) -> String {
        (0..n_attributes).map(|n| format!(" x{n}")).collect()
    }

    /// The work of the tokenizer is quadratic in these counts.
    #[test]
    fn no_tag_has_more_attributes_than_allowed_whatever_stands_before_it() {
        let many = attributes(5000);
        let before = [
            "",
            "text",
            "&am",
            "&#00",
            "&amp",
            "&amp;",
            "&#39;",
            "<",
            "<<",
            "</>",
            "<![CDATA[]]>",
            "<![CDATA[x]]>",
            "<!-- c -->",
            "<!>",
            "<?x>",
            "</ x>",
            "<a y=\"<b z='\"",
            "&am<a y=\"<b z='\"",
            "<a <b <c ",
            "<a y='",
            "<b/><i x=y>",
            "<script></script>",
            "<script>x</scrip",
            "<script><!--<script>x</script>--></script>",
            "<p>&notit;",
            "<!doctype html>",
            "<a/",
        ];
        for before in before {
            for start in ["<a", "</a", "<a y=\">\"", "<a <b", "<a y=1/", "<a\n/"] {
                let html = format!("{before}{start}{many}>after");
                let seen = seen(&html);
                assert!(
                    seen.most_attributes <= MAX_ATTRIBUTES + 1,
                    "{before:?} {start:?}: {}",
                    seen.most_attributes
                );
            }
        }
    }

    #[test]
    fn text_after_a_truncated_tag_is_read_as_before() {
        let seen = seen(&format!("<p{} y='>'>text<b>", attributes(1000)));
        assert_eq!(seen.most_attributes, MAX_ATTRIBUTES);
        assert_eq!(seen.words[1..], ["text text".to_string(), "StartTag b ".to_string()]);
    }

    #[test]
    fn plain_tags_are_read_as_the_tokenizer_reads_them() {
        for tag in [
            "<p>",
            "<P Class=A>",
            "</P >",
            "<br/>",
            "<br />",
            "<a b/>",
            "<a b=c/>",
            "<a b=c/d>",
            "<a b = c>",
            "<a b c>",
            "<a b=>",
            "<a b=\"\">",
            "<a b=''c>",
            "<a b='1'\r\nc=\"2\">",
            "<a b='x\ry'>",
            "<a b='x&y'>",
            "<a b='\0'>",
            "<a b='1' b='2' B=3>",
            "<a =b>",
            "<a \"b>",
            "<a b\"c>",
            "<a b=c\"d>",
            "<a/b>",
            "<a / b>",
            "</a b>",
            "</a/>",
            "<a é=1>",
            "<aé>",
            "<a b=é>",
            "<a\tb\u{c}c>",
            "<a b='<c>'>",
            "<a b",
            "<a b='",
            "<a @b=c :d.e='f'>",
            "<x-yz data-a-b_c=1>",
            "<averyveryverylongnameofanelement-that-has-no-end-for-long x>",
        ] {
            // The first tag passes through the tokenizer. The text in between shows where the second one ends.
            let html = format!("<i>{tag}x\n y &lt; z\r</i>{tag}\ntext<b>{tag}");
            assert_eq!(seen(&html), seen_unbounded(&html), "{tag}");
        }
    }

    #[test]
    fn text_similar_to_a_tag_is_unchanged() {
        for (start, end) in
            [("<!-- <a", "> -->"), ("<script>if (1 <a", ">2)</script>"), ("<![CDATA[ <a", "> ]]>")]
        {
            let html = format!("{start}{}{end}<b>", attributes(1000));
            assert_eq!(seen(&html), seen_unbounded(&html), "{start}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn honest_pages_are_read_as_they_are(picks in proptest::collection::vec(0..32usize, 0..40)) {
            const PARTS: [&str; 32] = [
                "<", ">", "a", "</", "/", " ", "=", "\"", "'", "&", "amp", ";", "<!--", "-->", "<script>", "</script>", "<b x=1>",
                "é", "\n", "<![CDATA[", "]]>", "<!", "#", "?", "<p class=\"é b\" ID='1'>", "</p>", "\r", "\0", "<br/>", "<i a a=2 b>",
                "text", "<a href='?x&amp;y'\n>",
            ];
            let html: String = picks.iter().map(|&pick| PARTS[pick]).collect();
            prop_assert_eq!(seen(&html), seen_unbounded(&html), "{:?}", html);
        }
    }
}
