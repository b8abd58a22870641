//! The codes of all diagnostics, each with a short title. A code is stable once released, and a
//! number is never used again for something else.
//!
//! L00x file and syntax, L01x to L02x shape, L03x to L04x names, L05x to L06x templates, L07x to
//! L08x tools, L09x sense, L10x safety, L20x the run's input.

macro_rules! codes {
    ($($name:ident = $code:literal $title:literal,)*) => {
        $(#[doc = $title] pub const $name: &str = $code;)*

        /// Every code of this list with its title, in the order of the codes.
        pub const TABLE: &[(&str, &str)] = &[$(($code, $title)),*];
    };
}

codes! {
    FILE = "L000" "A file that can't be read",
    SYNTAX = "L001" "Text that is not JSON",
    ENCODING = "L002" "A text that is not plain UTF-8",
    EMPTY = "L003" "A file with nothing in it",
    STRING = "L004" "A string that is not well formed",
    NUMBER = "L005" "A number that is not well formed",
    COMMA = "L006" "A comma too many or too few",
    COMMENT = "L007" "A comment",
    DUPLICATE_KEY = "L008" "A key that stands twice in an object",
    TOO_MUCH = "L009" "A document that is too deep or too large",
    UNKNOWN_FIELD = "L010" "A field that is not known",
    MISSING_FIELD = "L011" "A field that is missing",
    WRONG_WORD = "L012" "A word that is none of those that are known",
    WRONG_TYPE = "L013" "A value of another type than is meant",
    OUT_OF_BOUNDS = "L014" "A number out of its bounds",
    WRONG_LENGTH = "L015" "A text or an array that is too short or too long",
    UNKNOWN_DOCUMENT = "L016" "A document of no known kind",
    UNREADABLE = "L017" "A document that matches its schema and can't be read all the same",
    NOT_YET = "L018" "Something that is known and can't be run here",
    NO_LOOP = "L019" "A document of another kind than is meant",
    UNKNOWN_ACTION = "L030" "An action that is not found",
    TWO_OF_A_NAME = "L031" "Two actions of one name",
    BAD_NAME = "L032" "A name that is not allowed",
    DUPLICATE_TOOL = "L033" "A tool that is declared twice",
    SHADOWED_BUILTIN = "L034" "An action that is named like a built-in tool",
    LEGACY_TOOL = "L035" "A tool in the old form",
    DECLARED_BUILTIN = "L036" "A built-in tool that is declared",
    NO_TOOLS = "L037" "A loop without tools of its own",
    CASE_TWINS = "L038" "Two tools whose names differ by case only",
    TEMPLATE = "L050" "A template that is not well formed",
    TEMPLATE_HELPER = "L051" "A helper, block or partial that templates do not have",
    TEMPLATE_NAME = "L052" "A name that means nothing where it stands in a template",
    TEMPLATE_SIZE = "L053" "A template that is too long or too deep",
    UNKNOWN_VARIABLE = "L054" "A variable that nothing supplies",
    NO_PARAMETER = "L060" "A variable that the action's parameters do not have",
    OPTIONAL_PARAMETER = "L061" "A variable whose parameter may be left out",
    UNUSED_PARAMETER = "L062" "A required parameter that nothing uses",
    HIDDEN_PARAMETER = "L063" "A parameter with the name of something of the engine's",
    BAD_SCHEMA = "L070" "A JSON Schema that is not valid",
    NO_OBJECT = "L071" "Parameters that no object matches",
    NO_DESCRIPTION = "L072" "A tool without a description",
    NOT_RUNNABLE = "L073" "An action of a kind that can't be run here",
    BAD_URL = "L074" "An address that can't be one",
    BAD_HEADER = "L075" "A header that can't be one",
    UNQUOTED = "L076" "A value in a JSON text that stands outside of quotes",
    BAD_QUERY = "L077" "A query whose placeholders and parameters do not fit",
    BAD_COMMAND = "L078" "A program or environment that can't be one",
    CREDENTIALS = "L100" "A password in an address",
    MIXED_HEADER = "L101" "A header that takes a secret and a value of the model",
    WANDERING_SECRET = "L102" "A secret that is sent to a host which a value names",
    CLEAR_SECRET = "L103" "A secret that is sent in the clear",
    SECRET_IN_PROMPT = "L104" "A secret in a text that a model reads",
    LOADER = "L105" "A variable of the environment that makes a program load others",
    SECRET = "L106" "A secret written out",
    BAD_INPUT = "L200" "An input that the loop does not take",
    MISSING_INPUT = "L201" "An input that is missing",
}

/// The title of a code; nothing for a code that is not in the list.
pub fn title(code: &str) -> Option<&'static str> {
    TABLE.iter().find(|(known, _)| *known == code).map(|(_, title)| *title)
}
