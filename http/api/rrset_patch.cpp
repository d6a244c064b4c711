#include "http/api/rrset_patch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/whole_number.h"
#include "base/words.h"
#include "dns/folded_key.h"
#include "dns/rdata/rdata.h"
#include "http/api/json_request.h"

namespace pando::http {

using nlohmann::json;
using Kind = RRsetChange::Kind;

namespace {

/// RFC 2181 §8: a TTL has 31 bits.
constexpr std::uint64_t kMaxTtl = 0x7FFFFFFF;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kKinds{{{"REPLACE", Kind::kReplace},
                                                                   {"DELETE", Kind::kDelete},
                                                                   {"EXTEND", Kind::kExtend},
                                                                   {"PRUNE", Kind::kPrune}}};

/// A number, or a text of digits as PowerDNS takes it.
Result<std::optional<std::uint32_t>> ttl_of(const json& object) {
  const json* value = member(object, "ttl");
  if (value == nullptr) return std::optional<std::uint32_t>();
  std::uint64_t ttl = kMaxTtl + 1;
  if (value->is_number_unsigned()) {
    ttl = value->get<std::uint64_t>();
  } else if (value->is_string()) {
    ttl = whole_number<std::uint64_t>(value->get_ref<const std::string&>()).value_or(ttl);
  }
  if (ttl > kMaxTtl)
    return fail(Errc::kInvalid, "Key 'ttl' is no Integer from 0 to {}", kMaxTtl);
  return std::optional(static_cast<std::uint32_t>(ttl));
}

Result<Kind> kind_of(const json& element) {
  auto text = text_of(element, "changetype");
  if (!text) return pass(text);
  for (const auto& [word, kind] : kKinds)
    if (equal_but_for_case(*text, word)) return kind;
  return fail(Errc::kInvalid, "Changetype {} is not a valid value", shown(*text));
}

Status read_target(const json& element, dns::NameView zone, RRsetChange& change) {
  auto name = text_of(element, "name");
  if (!name) return pass(name);
  auto type = text_of(element, "type");
  if (!type) return pass(type);
  if (!name->ends_with('.'))
    return fail(Errc::kInvalid, "DNS Name {} is not canonical", shown(*name));
  const auto owner = dns::Name::from_text(*name);
  if (!owner) return fail(Errc::kInvalid, "{}: {}", shown(*name), owner.error().text);
  const auto number = dns::rrtype_from_text(*type);
  if (!number || dns::is_meta_type(*number))
    return fail(Errc::kInvalid, "RRset {} IN {}: unknown type given", to_text(*owner),
                shown(*type));
  if (!owner->view().is_at_or_below(zone))
    return fail(Errc::kInvalid, "RRset {} IN {}: Name is out of zone", to_text(*owner), *type);
  change.owner = *owner;
  change.type = *number;
  return {};
}

/// Zone-file syntax that may hide a part of the text, or join lines, has no place in one record.
/// Gives the octet that is wrong.
std::optional<char> stray_octet(std::string_view content) {
  bool in_quotes = false;
  for (std::size_t at = 0; at < content.size(); ++at) {
    const char c = content[at];
    if (static_cast<unsigned char>(c) < ' ') return c;
    if (c == '\\') {
      ++at;  // also of \DDD, whose digits are harmless
    } else if (c == '"') {
      in_quotes = !in_quotes;
    } else if (!in_quotes && (c == ';' || c == '(' || c == ')')) {
      return c;
    }
  }
  return std::nullopt;
}

/// PowerDNS takes a text of any length, and cuts it for the wire. octodns sends it so.
std::string with_cut_strings(std::string_view content) {
  constexpr std::size_t kMaxOctets = 255;  // RFC 1035 §3.3
  std::string cut;
  bool in_quotes = false;
  std::size_t octets = 0;
  for (std::size_t at = 0; at < content.size(); ++at) {
    if (content[at] == '"') {
      in_quotes = !in_quotes;
      octets = 0;
    } else if (in_quotes && octets++ == kMaxOctets) {
      cut += "\" \"";
      octets = 1;
    }
    cut += content[at];
    if (content[at] != '\\' || at + 1 == content.size()) continue;
    const bool digits = std::isdigit(static_cast<unsigned char>(content[at + 1])) != 0;
    const std::string_view escaped = content.substr(at + 1, digits ? 3 : 1);  // \DDD or \X
    cut += escaped;
    at += escaped.size();
  }
  return cut;
}

Result<Bytes> read_content(std::string_view content, dns::RRType type) {
  // A relative name differs with the origin. PowerDNS takes none: it would be below the zone here,
  // and below the root there.
  static const dns::Name kOther = dns::Name::from_text("other.").value();
  if (const auto stray = stray_octet(content))
    return fail(Errc::kInvalid, "invalid character '\\{:03}'", static_cast<unsigned char>(*stray));
  std::string cut;
  if (type == dns::RRType::kTXT || type == dns::RRType::kSPF)
    content = cut = with_cut_strings(content);
  Bytes rdata;
  if (auto read = dns::rdata_from_text(type, content, dns::NameView(), rdata); !read)
    return pass(read);
  Bytes elsewhere;
  const auto again = dns::rdata_from_text(type, content, kOther, elsewhere);
  if (!again || elsewhere != rdata) return fail(Errc::kInvalid, "a name needs a final dot");
  return rdata;
}

Status read_record(const json& record, RRsetChange& change) {
  auto content = text_of(record, "content");
  if (!content) return pass(content);
  const auto refuse = [&](std::string_view reason) {
    return fail(Errc::kInvalid, "Record {}/{} {}: {}", to_text(change.owner),
                to_text(change.type), shown(*content), reason);
  };
  if (member(record, "priority") != nullptr) return refuse("'priority' is not allowed in a record");
  const json* disabled = member(record, "disabled");
  if (disabled != nullptr && !disabled->is_boolean()) return refuse("'disabled' is not a Bool");
  if (disabled != nullptr && disabled->get<bool>()) return refuse("a disabled record has no place");
  auto rdata = read_content(*content, change.type);
  if (!rdata) return refuse(rdata.error().text);
  if (auto fits = dns::check_record_size(change.owner, change.type, *rdata); !fits) return fits;
  change.rdatas.push_back(std::move(*rdata));
  return {};
}

bool is_single(dns::RRType type) noexcept {
  return type == dns::RRType::kCNAME || type == dns::RRType::kDNAME || type == dns::RRType::kSOA;
}

/// Rules about the records of one RRset together.
Status check_records(const RRsetChange& change) {
  const auto refuse = [&](std::string_view reason) {
    return fail(Errc::kInvalid, "RRset {} IN {}: {}", to_text(change.owner), to_text(change.type),
                reason);
  };
  if (is_single(change.type) && change.rdatas.size() > 1) return refuse("only one record allowed");
  if (change.kind == Kind::kReplace && !change.rdatas.empty() && !change.ttl)
    return fail(Errc::kInvalid, "Key 'ttl' not present or not an Integer");
  if (change.kind != Kind::kReplace && change.rdatas.size() != 1)
    return refuse("exactly one record belongs to PRUNE or EXTEND");
  std::vector<ByteView> sorted(change.rdatas.begin(), change.rdatas.end());
  const auto compare = [&](ByteView a, ByteView b) {
    return dns::compare_rdata_canonical(change.type, a, b);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](ByteView a, ByteView b) { return compare(a, b) < 0; });
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), [&](ByteView a, ByteView b) {
    return compare(a, b) == 0;
  });
  if (twice != sorted.end())
    return refuse("duplicate record '" + dns::rdata_to_text(change.type, *twice) + "'");
  return {};
}

Status check_comments(const json& element) {
  const json* comments = member(element, "comments");
  if (comments == nullptr || (comments->is_array() && comments->empty())) return {};
  return fail(Errc::kInvalid, "Hosting backend does not support editing comments.");
}

/// False: the element changes nothing.
Result<bool> read_records(const json& element, std::size_t room, RRsetChange& change) {
  const json* records = member(element, "records");
  if (auto none = check_comments(element); !none) return pass(none);
  if (records == nullptr && member(element, "comments") != nullptr) return false;
  if (records == nullptr || !records->is_array())
    return fail(Errc::kInvalid, "No change for RRset {} IN {}", to_text(change.owner),
                to_text(change.type));
  if (records->size() > room) return fail(Errc::kFull, "more than {} changes", kMaxChanges);
  auto ttl = ttl_of(element);
  if (!ttl) return pass(ttl);
  change.ttl = *ttl;
  for (const json& record : *records)
    if (auto read = read_record(record, change); !read) return pass(read);
  if (auto fine = check_records(change); !fine) return pass(fine);
  return true;
}

}  // namespace

Result<std::vector<RRsetChange>> read_rrsets(const json& rrsets, dns::NameView zone) {
  std::vector<RRsetChange> changes;
  std::set<std::tuple<std::string, dns::RRType, Kind>> seen;
  std::size_t count = 0;
  for (const json& element : rrsets) {
    if (++count > kMaxChanges) return fail(Errc::kFull, "more than {} changes", kMaxChanges);
    RRsetChange change;
    auto kind = kind_of(element);
    if (!kind) return pass(kind);
    change.kind = *kind;
    if (auto read = read_target(element, zone, change); !read) return pass(read);
    const bool whole = *kind == Kind::kReplace || *kind == Kind::kDelete;
    if (whole && !seen.emplace(dns::folded_key(change.owner), change.type, *kind).second)
      return fail(Errc::kInvalid, "Duplicate RRset {} IN {} with changetype: {}",
                  to_text(change.owner), to_text(change.type),
                  kKinds.at(static_cast<std::size_t>(*kind)).first);
    // The records and the TTL of a DELETE say nothing: clients send them.
    auto changes_something =
        *kind == Kind::kDelete ? true : read_records(element, kMaxChanges - count, change);
    if (!changes_something) return pass(changes_something);
    count += change.rdatas.size();
    if (*changes_something) changes.push_back(std::move(change));
  }
  return changes;
}

Result<std::vector<RRsetChange>> read_patch(std::string_view body, dns::NameView zone) {
  const auto document = read_document(body);
  if (!document) return tl::unexpected<Error>(document.error());
  const json* rrsets = member(*document, "rrsets");
  if (rrsets == nullptr || !rrsets->is_array())
    return fail(Errc::kInvalid, "No rrsets given in update request");
  return read_rrsets(*rrsets, zone);
}

}  // namespace pando::http
