#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "dns/dnssec/nsec3_hash.h"
#include "worker/answer/resolve.h"
#include "worker/request/outcome.h"
#include "worker/request/request_context.h"
#include "worker/request/settings_cache.h"
#include "worker/respond/answer_templates.h"
#include "worker/respond/foreseen.h"
#include "worker/respond/kept_answers.h"
#include "worker/respond/kept_lookups.h"
#include "worker/respond/question_sampler.h"
#include "worker/request/rate_limit.h"
#include "worker/respond/server_sets.h"
#include "worker/respond/zone_expiry.h"

namespace pando::worker {

/// Answers questions from the zones: access rules, lookup, rate limit, rendering.
class QueryHandler {
 public:
  QueryHandler(SettingsCache& cache, const ZoneExpiry& expiry) noexcept
      : cache_(cache), expiry_(expiry) {}
  QueryHandler(const QueryHandler&) = delete;
  QueryHandler& operator=(const QueryHandler&) = delete;

  /// For a question of class IN or ANY that asks for no transfer, after the check of its signature.
  Outcome answer(RequestContext& context);
  /// Begins to seek the lookups of `questions` requests that are read together. False: they are to
  /// be made without seeking.
  [[nodiscard]] bool begin_recall(std::size_t questions) noexcept {
    return lookups_.begin(questions);
  }
  /// The place where the request's lookup may be kept, if it may be. The place's memory is asked
  /// for.
  void seek_lookup(const RequestContext& context,
                   std::optional<KeptLookups::Sought>& out) const noexcept;
  /// In place of a lookup and foresee(): whether the result is kept.
  [[nodiscard]] bool recall(const RequestContext& context, const KeptLookups::Sought& sought,
                            Foreseen& out) noexcept;
  /// For a request that is read together with others, whose zone is loaded: names in `out` what its
  /// answer may be made of, and asks for the memory of that. `match` is the result of the lookup of
  /// its name in that zone, and stays in place while the request is handled.
  void foresee(const RequestContext& context, const zone::Match& match,
               Foreseen& out) const noexcept;
  /// Keeps the result of the lookup that foresee() was given, if it serves other names.
  void keep_lookup(const RequestContext& context, const Foreseen& foreseen);
  /// Asks for the memory that the memory of foresee() leads to.
  void fetch(const Foreseen& foreseen) const noexcept;
  /// Number of kept answers that were repeated since the last call.
  [[nodiscard]] std::size_t take_repeated() noexcept { return std::exchange(repeated_, 0); }

 private:
  /// A question as the table of kept answers knows it.
  struct Asked {
    KeptAnswers::Key key;
    AnswerPlace place;
    bool may_be_kept = false;
    KeptAnswers::Entry* kept = nullptr;  ///< its answer in the batch's version
  };

  [[nodiscard]] Asked look_for(const RequestContext& context) noexcept;
  Outcome answer_below(RequestContext& context, const zone::NameKey& name,
                       const zone::ZoneView& nearest, Asked& asked);
  const DecodedZoneSettings* rules_of(RequestContext& context, const zone::ZoneView& zone);
  [[nodiscard]] bool has_expired(const RequestContext& context, const zone::ZoneView& zone,
                                 const DecodedZoneSettings* rules) const;
  Outcome answer_from(RequestContext& context, const zone::ZoneView& zone,
                      const zone::NameKey& name, const DecodedZoneSettings* rules,
                      const Asked& asked);
  void choose_options(RequestContext& context, const zone::ZoneView& zone,
                      const DecodedZoneSettings* rules, bool authoritative) const;
  [[nodiscard]] AnswerPlace place_of(const AnswerTemplates::Key& key) const noexcept;
  void choose_denial(const dns::Question& question, const zone::ZoneView& zone,
                     const ResolveOptions& options);
  bool put_answer(const dns::Question& question, const zone::ZoneView& zone,
                  const ResolveOptions& options, dns::MessageWriter& writer);
  bool put_denial(const dns::Question& question, const zone::ZoneView& zone,
                  const ResolveOptions& options, dns::MessageWriter& writer);
  bool put_referral(const dns::Question& question, const zone::ZoneView& zone,
                    const ResolveOptions& options, dns::MessageWriter& writer);
  bool put_shared_referral(const dns::Question& question, const zone::ZoneView& zone,
                           const ResolveOptions& options, dns::MessageWriter& writer);
  const ServerSets::Kept* find_servers(const ServerSets::Key& key, const zone::ZoneView& zone,
                                       const ResolveOptions& options);
  bool put_security(const dns::Question& question, const zone::ZoneView& zone,
                    const ResolveOptions& options, dns::MessageWriter& writer);
  std::optional<Outcome> repeat(RequestContext& context, const zone::ZoneView& zone,
                                const DecodedZoneSettings* rules, const KeptAnswers::Entry& kept);
  Outcome answer_recalled(RequestContext& context, const zone::RecordView& record);
  Outcome answer_anew(RequestContext& context, const zone::ZoneView& zone,
                      const DecodedZoneSettings* rules, const ResolveOptions& options,
                      const Asked* asked);
  Outcome respond(RequestContext& context, const zone::ZoneView& zone,
                  const DecodedZoneSettings* rules, const ResolveOptions& options,
                  const Asked* asked);
  [[nodiscard]] bool may_repeat(std::size_t octets) const noexcept;
  void keep(const RequestContext& context, const Asked& asked, const zone::ZoneView& zone,
            std::size_t room, const ResponseKind& kind, const dns::MessageWriter& writer);

  SettingsCache& cache_;
  const ZoneExpiry& expiry_;
  const Foreseen* foreseen_ = nullptr;  ///< for the zone of the answer in hand
  QuestionSampler sampler_;
  KeptAnswers kept_;
  KeptLookups lookups_;
  AnswerTemplates templates_;
  ServerSets server_sets_;
  dns::Nsec3Hasher hasher_;
  Answer answer_;
  std::size_t repeated_ = 0;
  std::optional<AnswerTemplates::Kept> denial_;  ///< of the name error in hand
};

}  // namespace pando::worker
