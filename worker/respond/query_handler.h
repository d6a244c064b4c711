#pragma once

#include <optional>

#include "dns/dnssec/nsec3_hash.h"
#include "worker/request/outcome.h"
#include "worker/request/request_context.h"
#include "worker/request/settings_cache.h"
#include "worker/respond/answer_cache.h"
#include "worker/respond/question_sampler.h"
#include "worker/respond/zone_expiry.h"

namespace pando::worker {

/// Answers questions from the zones: access rules, lookup, rate limit, rendering.
class QueryHandler {
 public:
  QueryHandler(SettingsCache& settings, const ZoneExpiry& expiry) noexcept
      : settings_(settings), expiry_(expiry) {}
  QueryHandler(const QueryHandler&) = delete;
  QueryHandler& operator=(const QueryHandler&) = delete;

  /// For a question of class IN or ANY that asks for no transfer, after the check of its signature.
  Outcome answer(RequestContext& context);
  /// For requests that are read together.
  [[nodiscard]] AnswerCache& cache() noexcept { return cache_; }

 private:
  Outcome answer_below(RequestContext& context, const zone::NameKey& name,
                       const zone::ZoneView& nearest);
  Outcome answer_from(RequestContext& context, const zone::NameKey* name);
  const DecodedZoneSettings* rules_of(RequestContext& context, const zone::ZoneView& zone);
  std::optional<Outcome> repeat(RequestContext& context, const WholeAnswers::Entry& whole,
                                const DecodedZoneSettings* rules);
  Outcome respond(RequestContext& context, Answer& answer, const DecodedZoneSettings* rules);
  void choose_options(RequestContext& context, const zone::ZoneView& zone,
                      const DecodedZoneSettings* rules, bool authoritative) const;

  SettingsCache& settings_;
  const ZoneExpiry& expiry_;
  QuestionSampler sampler_;
  dns::Nsec3Hasher hasher_;
  AnswerCache cache_{hasher_};
  AnswerCache::Inquiry inquiry_;
};

}  // namespace pando::worker
