#pragma once

#include <functional>
#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "dns/message/message_header.h"
#include "ipc/control_results.h"
#include "zone/read/store_view.h"

/// Reasons for an answer, from the function that answers.
namespace pando::manager {

/// A query as a client would send it over UDP.
struct ExplainedQuery {
  dns::Question question;
  std::optional<IpAddress> client;  ///< absent: rules about addresses are named, not applied
  std::optional<dns::Name> key;     ///< TSIG key that signs the query
  bool dnssec_ok = false;           ///< DO bit
};

/// Answers the query from one version and tells why, step by step. A pure function: the caller has
/// pinned the version, and `expired` says whether the zone of the answer has expired.
/// kInvalid: a type that asks for another service than an answer (AXFR, TSIG, …).
Result<ipc::ExplainResult> explain(const zone::StoreView& view, const ExplainedQuery& query,
                                   const std::function<bool(const zone::ZoneView&)>& expired);

}  // namespace pando::manager
