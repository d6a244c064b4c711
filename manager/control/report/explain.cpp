#include "manager/control/report/explain.h"

#include <algorithm>
#include <memory>

#include "dns/dnssec/nsec3_hash.h"
#include "dns/rdata/rdata.h"
#include "worker/answer/resolve.h"
#include "worker/answer/resolve_trace.h"
#include "zone/settings/acl.h"

namespace pando::manager {

namespace {

using dns::RRType;
using worker::Answer;
using worker::Entry;
using worker::ResolveTrace;
using Sentences = std::vector<std::string>;

/// QTYPEs 128 to 255 are no data but ANY (RFC 6895 §3.1), and three types are never asked for.
bool asks_for_data(RRType type) {
  const auto number = static_cast<std::uint16_t>(type);
  if (type == RRType::kOPT || type == RRType::kNXNAME || number == 0) return false;
  return number < 128 || number > 255 || type == RRType::kANY;
}

std::string text_of(const zone::AclRule& rule) {
  std::string text = rule.deny ? "deny" : "allow";
  if (rule.address) text += " " + to_text(*rule.address);
  if (rule.key) text += " key " + to_text(*rule.key);
  if (rule.tls) text += " tls " + *rule.tls;
  if (!rule.address && !rule.key && !rule.tls) text += " everybody";
  return text;
}

std::string text_of(const ExplainedQuery& query) {
  std::string text = query.client ? to_text(*query.client) : std::string("any address");
  return text + (query.key ? " with key " + to_text(*query.key) : " without a key");
}

/// A query that is explained comes over UDP or plain TCP: rules about TLS do not match it.
constexpr const PeerIdentity* kOverPlainDns = nullptr;

/// Judges `allow-query`; without an address only lists that do not depend on it. False: refused.
bool explain_access(const zone::Acl& rules, const ExplainedQuery& query, Sentences& steps) {
  const dns::Name* const key = query.key ? &*query.key : nullptr;
  const auto about_all = [](const zone::AclRule& rule) {
    return !rule.address && !rule.key && !rule.tls;
  };
  if (!query.client && !std::ranges::all_of(rules, about_all)) {
    steps.push_back(fmt::format(
        "allow-query has {} rules about clients, which were not judged: the address is not given.",
        rules.size()));
    return true;
  }
  const IpAddress client = query.client.value_or(IpAddress{});
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!zone::concerns(rules[i], {client, key, kOverPlainDns})) continue;
    steps.push_back(fmt::format("Rule {} of allow-query ({}) is the first that matches {}: {}.",
                                i + 1, text_of(rules[i]), text_of(query),
                                rules[i].deny ? "refused" : "allowed"));
    return !rules[i].deny;
  }
  steps.push_back(
      fmt::format("None of the {} rules of allow-query matches {}: refused.", rules.size(),
                  text_of(query)));
  return false;
}

std::string text_of(const ResolveTrace::Step& step) {
  using Event = ResolveTrace::Event;
  const std::string name = to_text(step.name);
  const std::string other = to_text(step.other);
  switch (step.event) {
    case Event::kExists:
      return fmt::format("{} exists in the zone.", name);
    case Event::kEmptyNonTerminal:
      return fmt::format("{} has no records, but a name below it has: it exists (RFC 8020).", name);
    case Event::kWildcard:
      return fmt::format("{} does not exist; the wildcard {} answers for it (RFC 4592).", name,
                         other);
    case Event::kEmptyWildcard:
      return fmt::format("{} does not exist; the wildcard {} exists without records.", name, other);
    case Event::kNoWildcard:
      return fmt::format("{} does not exist; its closest encloser is {}, which has no wildcard.",
                         name, other);
    case Event::kReferral:
      return fmt::format("{} is delegated at {}: a referral to its name servers.", name, other);
    case Event::kDname:
      return fmt::format("A DNAME at {} redirects {} (RFC 6672).", other, name);
    case Event::kNameTooLong:
      return fmt::format("The name that the DNAME makes of {} is too long.", name);
    case Event::kAlias:
      return fmt::format("{} is an alias; {} is looked up next.", name, other);
    case Event::kOutside:
      return fmt::format("{} is an alias of {}, which is not in this zone: the client looks there.",
                         name, other);
    case Event::kLoop:
      return fmt::format("{} is an alias of {}, which was looked up before: a loop ends here.", name,
                         other);
    case Event::kDamaged:
      return fmt::format("What the store has of {} cannot be read: 'pandoctl store check'.", name);
  }
  return {};
}

template <class List>
std::vector<ipc::RecordRow> rows_of(const List& entries) {
  std::vector<ipc::RecordRow> rows;
  dns::Name scratch;
  for (const Entry& entry : entries) {
    const std::string owner = to_text(entry.owner.name(scratch));
    const auto add = [&](RRType type, const std::string& rdata) {
      rows.push_back({owner, entry.ttl, to_text(type), rdata});
    };
    if (entry.synthesized) {
      add(RRType::kCNAME, to_text(entry.cname_target));
      continue;
    }
    const RRType type = entry.rrset.type();
    if (entry.parts != worker::Parts::kSignatures)
      entry.rrset.for_each_rdata(
          [&](ByteView rdata) { add(type, dns::rdata_to_text(type, rdata)); });
    if (entry.parts != worker::Parts::kData)
      entry.rrset.for_each_signature([&](ByteView rest) {
        Bytes rdata;
        append_be16(rdata, static_cast<std::uint16_t>(type));
        append(rdata, rest);
        add(RRType::kRRSIG, dns::rdata_to_text(RRType::kRRSIG, rdata));
      });
  }
  return rows;
}

/// Owners of the NSEC or NSEC3 records that prove a denial.
std::string proofs_of(const Answer& answer) {
  std::string owners;
  dns::Name scratch;
  for (const Entry& entry : answer.authority) {
    const RRType type = entry.synthesized ? RRType::kCNAME : entry.rrset.type();
    if (type != RRType::kNSEC && type != RRType::kNSEC3) continue;
    if (!owners.empty()) owners += ", ";
    owners += to_text(type) + " " + to_text(entry.owner.name(scratch));
  }
  return owners;
}

/// The verdict, from the finished answer.
void explain_outcome(const Answer& answer, const ExplainedQuery& query, const zone::ZoneView& zone,
                     Sentences& steps) {
  const bool referral = !answer.aa && answer.rcode == dns::Rcode::kNoError;
  if (answer.rcode == dns::Rcode::kNXDomain)
    steps.push_back("The last name does not exist: NXDOMAIN.");
  else if (answer.rcode == dns::Rcode::kNoError && answer.answer.empty() && !referral)
    steps.push_back(fmt::format("The name has no {} record: an answer without data.",
                                to_text(query.question.type)));
  if (!query.dnssec_ok) return;
  if (zone.denial() == zone::Denial::kUnsigned) {
    steps.push_back("The zone is not signed: DO changes nothing.");
  } else if (const std::string proofs = proofs_of(answer); !proofs.empty()) {
    steps.push_back(fmt::format("What does not exist is proven by {}.", proofs));
  }
}

void explain_rate_limit(const zone::RateLimit& limit, const ExplainedQuery& query, Sentences& steps) {
  if (limit.responses == 0) return;
  const bool exempt =
      query.client && std::ranges::any_of(limit.exempt, [&](const IpPrefix& prefix) {
        return prefix.contains(*query.client);
      });
  if (exempt)
    steps.push_back(fmt::format("server.rate-limit exempts {}.", to_text(*query.client)));
  else
    steps.push_back(fmt::format(
        "server.rate-limit lets {} such responses a second go to one network over UDP, unless the "
        "query has a valid cookie or signature.",
        limit.responses));
}

void refuse(ipc::ExplainResult& result, dns::Rcode rcode, std::string why) {
  result.rcode = to_text(rcode);
  result.steps.push_back(std::move(why));
}

/// The zone, whether it serves, and whether it answers this client. False: it does not.
bool explain_zone(const zone::ZoneView& zone, const ExplainedQuery& query, bool expired,
                  ipc::ExplainResult& result) {
  if (!zone) {
    refuse(result, dns::Rcode::kRefused, "No zone of this server is at or above the name.");
    return false;
  }
  result.zone = to_text(zone.apex());
  result.serial = zone.loaded() ? zone.serial().value : 0;
  const bool parent_asked = query.question.type == RRType::kDS &&
                            zone.apex().size() < query.question.name.size();
  result.steps.push_back(
      fmt::format("{} is the zone that answers{}.", result.zone,
                  parent_asked ? ", as DS records are in the parent zone" : ""));
  const auto settings = zone::decode_zone_settings(zone.settings_bytes());
  if (!settings) {
    refuse(result, dns::Rcode::kServFail, "The zone's settings in the store cannot be read.");
    return false;
  }
  if (!explain_access(settings->allow_query, query, result.steps)) {
    result.rcode = to_text(dns::Rcode::kRefused);
    return false;
  }
  if (!zone.loaded())
    refuse(result, dns::Rcode::kServFail, "The zone has no data yet: 'pandoctl zone status'.");
  else if (expired)
    refuse(result, dns::Rcode::kServFail, "The zone has expired: no primary answers.");
  return zone.loaded() && !expired;
}

}  // namespace

Result<ipc::ExplainResult> explain(const zone::StoreView& view, const ExplainedQuery& query,
                                   const std::function<bool(const zone::ZoneView&)>& expired) {
  const dns::Question& question = query.question;
  if (!asks_for_data(question.type))
    return fail(Errc::kInvalid, "{} asks for no records of a name", to_text(question.type));
  ipc::ExplainResult result;
  result.question = fmt::format("{} {}", to_text(question.name), to_text(question.type));
  const zone::ZoneView zone = worker::choose_zone(view, question.name, question.type);
  if (!explain_zone(zone, query, zone && expired(zone), result)) return result;
  auto server = zone::decode_server_settings(view.server_settings_bytes());
  if (!server) return pass(server);
  const auto trace = std::make_unique<ResolveTrace>();
  const auto answer = std::make_unique<Answer>();
  dns::Nsec3Hasher hasher;
  worker::ResolveOptions options;
  options.dnssec_ok = query.dnssec_ok;
  options.minimal_responses = server->minimal_responses;
  options.trace = trace.get();
  worker::resolve(zone, question, options, hasher, *answer);
  for (const ResolveTrace::Step& step : trace->steps()) result.steps.push_back(text_of(step));
  explain_outcome(*answer, query, zone, result.steps);
  explain_rate_limit(server->rate_limit, query, result.steps);
  result.rcode = to_text(answer->rcode);
  result.authoritative = answer->aa;
  result.answer = rows_of(answer->answer);
  result.authority = rows_of(answer->authority);
  result.additional = rows_of(answer->additional);
  return result;
}

}  // namespace pando::manager
