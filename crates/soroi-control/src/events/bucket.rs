//! May this happen now? A bucket of tokens that fills up with time.

use jiff::{SignedDuration, Timestamp};

/// Holds up to `size` tokens and gets one more every `refill`.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    size: u32,
    refill: SignedDuration,
    tokens: u32,
    /// When the last token came. Between this and now there is no whole `refill`, after
    /// [`Self::fill`].
    filled_at: Timestamp,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn full(size: u32, refill: SignedDuration, now: Timestamp) -> Self {
        Self { size, refill, tokens: size, filled_at: now }
    }

    fn fill(&mut self, now: Timestamp) {
        let each = self.refill.as_nanos().max(1);
        let came = now.duration_since(self.filled_at).as_nanos() / each;
        if came <= 0 {
            return;
        }
        let room = self.size - self.tokens;
        let came = u32::try_from(came).unwrap_or(u32::MAX);
        if came >= room {
            self.tokens = self.size;
            self.filled_at = now;
        } else {
            self.tokens += came;
            let span = self.refill.checked_mul(i32::try_from(came).unwrap_or(i32::MAX));
            self.filled_at = self.filled_at.saturating_add(span.unwrap_or(self.refill)).unwrap_or(now);
        }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        self.fill(now);
        let there = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        there
    }

    /// Whether there is a token.
    pub(super) fn has(&mut self, now: Timestamp) -> bool {
        self.fill(now);
        self.tokens > 0
    }

    /// When there will be a token: `filled_at` itself while there is one.
    pub(super) fn next(&self) -> Timestamp {
        if self.tokens > 0 {
            return self.filled_at;
        }
        self.filled_at.saturating_add(self.refill).unwrap_or(Timestamp::MAX)
    }

    /// Nothing of it is in use, so it can be forgotten.
    pub(super) fn is_full(&mut self, now: Timestamp) -> bool {
        self.fill(now);
        self.tokens == self.size
    }
}
