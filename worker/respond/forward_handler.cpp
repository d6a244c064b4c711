#include "worker/respond/forward_handler.h"

#include <algorithm>

#include "worker/request/response_builder.h"
#include "worker/request/tsig_check.h"
#include "zone/settings/acl.h"

namespace pando::worker {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;

/// The zone that the request names; none for another class.
zone::ZoneView zone_of(const RequestContext& context) {
  const dns::Question& question = context.request.question;
  if (question.rr_class != RRClass::kIN) return {};
  return context.batch.view.zone_at(question.name);
}

/// True when some rule could admit this client, whatever the key.
bool may_pass_with_some_key(const zone::Acl& acl, const zone::Requester& client) {
  return std::any_of(acl.begin(), acl.end(), [&](const zone::AclRule& rule) {
    return !rule.deny && zone::concerns_with_some_key(rule, client);
  });
}

/// True when the manager may reach another result than "refused", or has to sign the refusal. The
/// key's name is only claimed here; the manager verifies the signature.
bool forwardable(const RequestContext& context, const zone::Acl& rules) {
  if (zone::could_allow(rules, context.requester())) return true;
  return context.request.tsig && may_pass_with_some_key(rules, context.requester());
}

/// True for an update that a secondary may forward to its primary. The check only filters requests
/// that the manager would refuse; the manager's UpdateService::to_forward() decides.
bool is_for_primary(const RequestContext& context, const zone::ZoneSettings& rules) {
  if (!rules.is_secondary || !rules.forward_updates) return false;
  if (context.request.tsig && rules.allow_update.empty()) return true;
  return zone::could_allow(rules.allow_update, context.requester());
}

/// `reason`: for the log.
Outcome refuse_request(RequestContext& context, Rcode rcode, Ede detail, std::string_view reason) {
  context.refusal = reason;
  return respond_error(context, rcode, detail);
}

VerifiedBy verifier(bool for_manager) {
  return for_manager ? VerifiedBy::kManager : VerifiedBy::kWorker;
}

}  // namespace

Outcome ForwardHandler::update(RequestContext& context) {
  const zone::ZoneView zone = zone_of(context);
  const DecodedZoneSettings* rules = zone ? cache_.zone(zone) : nullptr;
  const bool secondary = rules != nullptr && rules->settings.is_secondary;
  const bool for_primary = secondary && is_for_primary(context, rules->settings);
  const bool for_manager = for_primary || (rules != nullptr && !secondary &&
                                           forwardable(context, rules->settings.allow_update));
  // A request forwarded to a primary may be signed with any key: perhaps the primary alone has that
  // key.
  if (for_primary)
    context.has_managers_key =
        context.request.tsig && context.batch.keys->is_managers_key(context.request.tsig->key_name);
  else if (auto failed = check_tsig(context, verifier(for_manager)))
    return *failed;
  // RFC 2136 §3.1.1
  if (context.request.question.type != RRType::kSOA) return respond_error(context, Rcode::kFormErr);
  if (!zone)
    return refuse_request(context, Rcode::kNotAuth, Ede::kNotAuthoritative, "no such zone");
  if (rules == nullptr) return respond_error(context, Rcode::kServFail);
  // RFC 2136 §6 lets a secondary forward; a secondary that does not forward answers REFUSED, as
  // BIND does.
  if (!for_manager)
    return refuse_request(context, Rcode::kRefused, Ede::kProhibited,
                          secondary ? "the zone is secondary: update its primary"
                                    : "no rule of allow-update allows it");
  return forward_to_manager(context, ipc::ForwardKind::kUpdate);
}

Outcome ForwardHandler::notify(RequestContext& context) {
  const zone::ZoneView zone = zone_of(context);
  const DecodedZoneSettings* rules = zone ? cache_.zone(zone) : nullptr;
  const bool secondary = rules != nullptr && rules->settings.is_secondary;
  const bool for_manager = secondary && forwardable(context, rules->settings.allow_notify);
  if (auto failed = check_tsig(context, verifier(for_manager))) return *failed;
  if (!zone)
    return refuse_request(context, Rcode::kNotAuth, Ede::kNotAuthoritative, "no such zone");
  if (rules == nullptr) return respond_error(context, Rcode::kServFail);
  if (!secondary)
    return respond_error(context, Rcode::kNotAuth);  // this server is the primary; as Knot
  if (!for_manager)
    return refuse_request(context, Rcode::kRefused, Ede::kProhibited,
                          "neither a primary of the zone nor allowed by allow-notify");
  return forward_to_manager(context, ipc::ForwardKind::kNotify);
}

}  // namespace pando::worker
