//! What masking and unmasking refuse.

use std::path::PathBuf;

/// Why a sketch was not masked, or masked sketches were not added up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant explains its fields")]
#[non_exhaustive]
pub enum MaskingError {
    #[error("the list has {found} parties; between 2 and {most} are possible")]
    PartyCount { found: usize, most: usize },
    #[error(
        "'{id}' cannot be the id of a party; use 1 to 64 of the characters a-z, A-Z, 0-9, '.', \
         '_' and '-'"
    )]
    PartyId { id: String },
    #[error(
        "the public key of '{id}' is not one: it should be the 64 hexadecimal digits that \
         'nysketch keys new' printed"
    )]
    PublicKey { id: String },
    #[error("'{id}' is in the list of parties twice; every party needs an id of its own")]
    SameId { id: String },
    #[error(
        "'{first}' and '{second}' have the same public key in the list of parties; each must make \
         its own"
    )]
    SameKey { first: String, second: String },
    #[error(
        "the public key of '{id}' would make masks that anybody can compute; that party must make \
         a new key"
    )]
    WeakKey { id: String },
    #[error("the secret key is that of '{id}', who is not in the list of parties")]
    NotListed { id: String },
    #[error(
        "the list of parties has another public key for '{id}' than that of this secret key; \
         correct the list, and compare its fingerprint with the other parties"
    )]
    AnotherKey { id: String },
    #[error(
        "'{found}' is not the id of a session: 32 to 128 hexadecimal digits; one party makes it \
         with 'nysketch keys session' and sends it to all others"
    )]
    Session { found: String },
    #[error("the file is not a secret key of nysketch; 'nysketch keys new' makes one")]
    SecretKey,
    #[error("it is not a regular file, as a secret key must be")]
    SecretKeyFile,
    #[error(
        "the plan was made from rows, which every masked file would show; make one with `private` \
         and `bounds`, and sketch the rows again"
    )]
    Plan,
    #[error(
        "a person may have more than {most} rows in this sketch, which was merged from others; \
         sketch the rows of a party at once"
    )]
    PersonRows { most: u64 },
    #[error(
        "the masked file of '{party}' was made for {found}, others of the session for {expected}; \
         all must ask for the same ε, δ, `spend`, `honest` and `disjoint_people`"
    )]
    MixedTerms { party: String, found: String, expected: String },
    #[error(
        "a sketch with folds cannot be masked; leave them out with 'nysketch merge', `drop_folds`"
    )]
    Folds,
    #[error(
        "this key was used in session {session} before, with another sketch, plan, list of parties \
         or draw of noise; two masked files of one session would reveal their difference. Agree on \
         a new session"
    )]
    Replay { session: String },
    #[error(
        "this key has no ledger at {}, so nothing shows which sessions it was used in. Bring the \
         ledger there from the machine or account that used the key before; only if the key never \
         masked anything, declare that with `new_key`",
        path.display()
    )]
    NoLedger { path: PathBuf },
    #[error(
        "this key is not new: its ledger is {}. Leave `new_key` out",
        path.display()
    )]
    NotNew { path: PathBuf },
    #[error(
        "a masked sketch of '{party}' belongs to session {found}, but others to {session}; add up \
         files of one session"
    )]
    MixedSessions { party: String, found: String, session: String },
    #[error(
        "a masked sketch of '{party}' was made with another list of parties ({found}) than others \
         ({expected}); all parties must mask again with one list, in a new session"
    )]
    MixedParties { party: String, found: String, expected: String },
    #[error("the masked sketch of '{party}' is there twice; give each file once")]
    Doubled { party: String },
    #[error(
        "there are two different masked sketches of '{party}' in one session; ask that party \
         which is right, and do not keep the other"
    )]
    Replayed { party: String },
    #[error(
        "{found} of {parties} masked sketches of session {session} are there; masks cancel only \
         if none is missing"
    )]
    Missing { found: usize, parties: usize, session: String },
    #[error(
        "the parties of these masked sketches differ from the list they were made with \
         ({expected}, found {found}); a file was altered"
    )]
    OtherParties { expected: String, found: String },
    #[error(
        "the masks do not cancel: a file was altered, or masked with other keys; all parties must \
         mask again in a new session"
    )]
    MasksRemain,
    #[error(
        "the sums do not agree with their check: a file was altered after it was masked; ask all \
         parties for their files again"
    )]
    Altered,
    #[error("no masked sketches to add up")]
    Nothing,
}
