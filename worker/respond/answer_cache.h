#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "dns/dnssec/nsec3_hash.h"
#include "worker/answer/resolve.h"
#include "worker/request/request_context.h"
#include "worker/respond/answer_templates.h"
#include "worker/respond/foreseen.h"
#include "worker/respond/server_sets.h"
#include "worker/respond/shared_lookups.h"
#include "worker/respond/whole_answers.h"

namespace pando::worker {

/// The answer cache of a worker: one front for four tables. A handler asks it once, with find(),
/// and gives it the answer that it did not find: with complete() before the response is begun, with
/// write() after.
///
/// - WholeAnswers: all sections of an answer, by the question;
/// - SharedLookups: that a child of a zone's apex is a delegation or does not exist, by its name;
/// - AnswerTemplates: a referral, or what name errors have in common, by cut or closest encloser;
/// - ServerSets: NS records and addresses of a set of servers that delegations share.
///
/// Entries belong to one state of a zone's data or to one version, so nothing invalidates them. An
/// answer that depends on the client reaches no table. docs/explanation/architecture.md draws the
/// flow.
class AnswerCache {
 public:
  /// One question from its request to its answer: what the cache has for it, and where its answer
  /// may go. A worker reuses its Inquiry, as its contexts: find() does not reset all members.
  struct Inquiry {
    const RequestContext* context = nullptr;
    /// The zone that answers, if an entry names it; else the caller finds it (set_zone()).
    zone::ZoneView zone;
    const Foreseen* foreseen = nullptr;    ///< in `zone`
    WholeAnswers::Entry* whole = nullptr;  ///< the whole answer; with `zone` it is right
    bool is_recalled = false;   ///< `answer` has the result of a cached lookup: no resolve() is due
    bool is_cacheable = false;  ///< as a whole, by `key` at `place`
    WholeAnswers::Key key;
    AnswerPlace place;
    ResolveOptions options;  ///< of resolve(); the caller's, before complete()
    Answer answer;
    std::optional<AnswerTemplates::Template> denial;  ///< stands for the answer's postponed denial
  };

  explicit AnswerCache(dns::Nsec3Hasher& hasher) noexcept : hasher_(hasher) {}
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;

  /// Begins with a question of class IN or ANY: what the cache has for it.
  void find(const RequestContext& context, Inquiry& inquiry) noexcept;
  /// Sets the zone that answers, or none. A whole answer from other data is dropped.
  void set_zone(Inquiry& inquiry, const zone::ZoneView& zone) noexcept;
  /// Completes a denial that resolve() has postponed, unless a template stands for it: a wildcard
  /// may make it a positive answer. A referral stays postponed until write().
  void complete(Inquiry& inquiry);
  /// Writes the answer after the question, of cached parts where there are some, and caches what
  /// is asked for again. `writer` has RCODE, AA and the question, in the space of the request. True
  /// when the answer was truncated.
  bool write(Inquiry& inquiry, dns::MessageWriter& writer);
  /// Counts a whole answer that was sent.
  void count_repeated() noexcept { ++repeated_; }
  /// Number of whole answers that were sent since the last call.
  [[nodiscard]] std::size_t take_repeated() noexcept { return std::exchange(repeated_, 0); }

  /// Begins to seek the lookups of `questions` requests that are read together. False: they are to
  /// be made without seeking.
  [[nodiscard]] bool begin_recall(std::size_t questions) noexcept {
    return recalls_ = lookups_.begin(questions);
  }
  /// The place where the request's lookup may be cached, if it may be. The place is prefetched.
  void seek_lookup(const RequestContext& context,
                   std::optional<SharedLookups::Sought>& out) const noexcept;
  /// In place of a lookup and foresee(): whether the result is cached.
  [[nodiscard]] bool recall(const RequestContext& context, const SharedLookups::Sought& sought,
                            Foreseen& out) noexcept;
  /// For a request that is read together with others, whose zone is loaded: names in `out` what its
  /// answer may be made of, and prefetches it. `match` is the result of the lookup of its name in
  /// that zone, and stays in place while the request is handled.
  void foresee(const RequestContext& context, const zone::Match& match,
               Foreseen& out) const noexcept;
  /// Prefetches the memory that the memory of foresee() leads to.
  void fetch(const Foreseen& foreseen) const noexcept;

  /// Entries' octets in each table; lookups: 1 if there are some.
  struct Use {
    std::size_t whole_answers, lookups, templates, server_sets;
    bool operator==(const Use&) const = default;
  };
  [[nodiscard]] Use use() const noexcept;

 private:
  [[nodiscard]] bool make_part(const Inquiry& inquiry, const dns::Question& question,
                               const AnswerPart& part);
  void complete_now(Inquiry& inquiry);
  void find_name_errors(Inquiry& inquiry);
  bool write_sections(Inquiry& inquiry, dns::MessageWriter& writer);
  bool write_denial(Inquiry& inquiry, dns::MessageWriter& writer);
  bool write_referral(Inquiry& inquiry, dns::MessageWriter& writer);
  bool write_shared_referral(const Inquiry& inquiry, dns::MessageWriter& writer);
  const ServerSets::Template* find_servers(const Inquiry& inquiry, const ServerSets::Key& key);
  bool write_security(const Inquiry& inquiry, dns::MessageWriter& writer);
  bool write_and_insert(Inquiry& inquiry, dns::MessageWriter& writer);
  void insert_lookup(const Inquiry& inquiry);

  dns::Nsec3Hasher& hasher_;
  WholeAnswers whole_;
  SharedLookups lookups_;
  AnswerTemplates templates_;
  ServerSets server_sets_;
  Answer part_;           ///< of make_part()
  bool recalls_ = false;  ///< lookups of the requests in hand are sought
  std::size_t repeated_ = 0;
};

}  // namespace pando::worker
