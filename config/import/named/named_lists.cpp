#include "config/import/named/named_lists.h"

#include <algorithm>
#include <array>

#include "config/settings/values.h"

namespace pando::config {

namespace {

/// Limit of a list's elements, nested lists included: a few lines of nested lists can expand to
/// billions.
constexpr std::size_t kMaxListSteps = 100'000;

/// The word after `keyword`, or `otherwise`.
std::string_view option_word(const NamedStatement& statement, std::string_view keyword,
                             std::string_view otherwise) {
  for (std::size_t i = 1; i + 1 < statement.words.size(); ++i)
    if (statement.lower(i) == keyword) return statement.words[i + 1];
  return otherwise;
}

std::uint16_t port_of(const NamedStatement& statement, std::uint16_t otherwise) {
  return port_in(option_word(statement, "port", ""), otherwise);
}

MatchRule unknown_rule() {
  MatchRule rule;
  rule.unknown = true;
  return rule;
}

}  // namespace

bool NamedLists::take(const NamedStatement& statement) {
  const std::string_view keyword = statement.word(0);
  const bool is_list = keyword == "primaries" || keyword == "masters" ||
                       keyword == "remote-servers" || keyword == "parental-agents";
  if (keyword != "acl" && keyword != "key" && keyword != "server" && !is_list) return false;
  if (statement.blocks.size() != 1) {
    report_.add(statement.at, keyword, "has not one block; is a semicolon missing?");
  } else if (keyword == "acl") {
    acls_.insert_or_assign(statement.lower(1), *statement.block());
  } else if (keyword == "server") {
    take_server(statement);
  } else if (is_list) {
    remote_lists_.insert_or_assign(statement.lower(1), statement);
  } else {
    const NamedStatement* algorithm = find_statement(statement.block(), "algorithm");
    const NamedStatement* secret = find_statement(statement.block(), "secret");
    out_.add_key(report_, statement.at, statement.word(1), algorithm ? algorithm->word(1) : "",
                 secret ? secret->word(1) : "");
  }
  return true;
}

void NamedLists::take_server(const NamedStatement& statement) {
  const auto network = parse_match_prefix(statement.word(1));
  if (!network)
    return report_.add(statement.at, fmt::format("server {}", statement.word(1)),
                       "is neither an address nor a network");
  std::string& key = servers_[network->length][to_text(network->address)];
  for (const NamedStatement& member : *statement.block()) {
    const NamedBlock* block = member.block();
    if (member.word(0) != "keys") {
      report_.note(member.at, fmt::format("server {}: {}", statement.word(1), member.word(0)),
                   "is not a setting of a remote here");
    } else if (block != nullptr && !block->empty()) {
      key = block->front().word(0);
    } else {
      key = member.word(1);
    }
  }
}

std::string_view NamedLists::server_key(const IpAddress& address) const {
  for (const auto& [length, networks] : servers_) {
    const IpPrefix network = network_of(address, length);
    if (address.is_v4() != network.address.is_v4()) continue;  // ::/0 has no IPv4 in BIND
    if (const auto found = networks.find(to_text(network.address)); found != networks.end())
      return found->second;
  }
  return {};
}

MatchRules NamedLists::rules_of_acl(const NamedStatement& element, const std::string& name,
                                    int depth) {
  if (depth >= ImportFiles::kMaxNesting || !expanding_.insert(name).second) {
    report_.add(element.at, fmt::format("acl {}", name), "lists refer to each other");
    return {unknown_rule()};
  }
  MatchRules rules = rules_of(acls_.find(name)->second, depth + 1);
  expanding_.erase(name);
  return rules;
}

MatchRules NamedLists::element_of(const NamedStatement& element, std::size_t at, int depth) {
  const std::string word = lower_case(element.word(at));
  if (const NamedBlock* block = element.block()) return rules_of(*block, depth + 1);
  if (word == "any") return {match_any()};
  if (word == "none") {
    MatchRules none{match_any()};
    none.front().rule.deny = true;
    return none;
  }
  if (word == "key") {
    MatchRules rules(1);
    rules.front().rule.key = out_.find_key(element.word(at + 1));
    if (rules.front().rule.key) return rules;
    report_.add(element.at, fmt::format("key {}", element.word(at + 1)), "no such key");
    return {unknown_rule()};
  }
  if (word == "localhost") {
    report_.add_once(element.at, word, {"loopback addresses alone, not the host's other ones"});
    MatchRules rules = match_prefix("::1");
    if (put_before(rules, false, match_prefix("127.0.0.0/8"))) return rules;
  }
  if (MatchRules rules = match_prefix(word); !rules.empty()) return rules;
  if (acls_.contains(word)) return rules_of_acl(element, word, depth);
  report_.add(element.at, word, "is neither an address, a key nor an acl here: it gets no access");
  return {unknown_rule()};
}

MatchRules NamedLists::rules_of(const NamedBlock& block, int depth) {
  MatchRules rules;
  for (auto element = block.rbegin(); element != block.rend(); ++element) {
    const bool negated = element->word(0) == "!";
    if (++steps_ <= kMaxListSteps &&
        put_before(rules, negated, element_of(*element, negated ? 1 : 0, depth)))
      continue;
    report_.add(element->at, "address match list", "is too long together with its lists");
    return {unknown_rule()};
  }
  return rules;
}

zone::Acl NamedLists::acl_of(const NamedStatement& statement) {
  // "allow-transfer port 853 transport tls { … }": there is no such port here.
  if (statement.words.size() > 1) {
    report_.add(statement.at, statement.word(0), "its port and transport are not conditions here");
    return {};
  }
  const NamedBlock* block = statement.block();
  steps_ = 0;
  return block == nullptr ? zone::Acl() : finish_rules(rules_of(*block, 0));
}

void NamedLists::add_remote(const NamedStatement& entry, std::uint16_t port, std::string_view key,
                            std::vector<std::string>& names) {
  auto endpoint = IpAddress::from_text(entry.word(0));
  if (!endpoint) return report_.add(entry.at, entry.word(0), "is no address and no list");
  if (key.empty()) key = server_key(*endpoint);
  std::optional<dns::Name> known;
  if (!key.empty()) known = out_.find_key(key);
  if (!key.empty() && !known)
    return report_.add(entry.at, fmt::format("{} key {}", entry.word(0), key), "no such key");
  add_unique(names, out_.remote({*endpoint, port}, known));
}

void NamedLists::collect_remotes(const NamedStatement& statement, std::uint16_t default_port,
                                 std::string_view default_key, int depth,
                                 std::vector<std::string>& names) {
  if (statement.block() == nullptr) return;
  const std::uint16_t port = port_of(statement, default_port);
  for (const NamedStatement& entry : *statement.block()) {
    const std::string_view key = option_word(entry, "key", default_key);
    if (++steps_ > kMaxListSteps || depth > ImportFiles::kMaxNesting)
      return report_.add_once(entry.at, entry.word(0),
                              {"lists of remotes are too deep or too long"});
    const auto list = remote_lists_.find(entry.word(0));
    if (!option_word(entry, "tls", "").empty())
      report_.add(entry.at, fmt::format("{} tls", entry.word(0)), "there is no transfer over TLS");
    else if (list != remote_lists_.end())
      collect_remotes(list->second, port_of(entry, port), key, depth + 1, names);
    else
      add_remote(entry, port_of(entry, port), key, names);
  }
}

std::vector<std::string> NamedLists::remotes_of(const NamedStatement& statement) {
  std::vector<std::string> names;
  steps_ = 0;
  collect_remotes(statement, kDnsPort, "", 0, names);
  return names;
}

namespace {

/// Owner patterns of a rule of update-policy; nothing if the kind has no counterpart.
std::optional<std::vector<std::string>> owner_patterns(std::string_view kind,
                                                       std::string_view name) {
  if (kind == "name") return std::vector{std::string(name)};
  if (kind == "subdomain") {
    if (name == ".") return std::vector<std::string>{};
    return std::vector{std::string(name), fmt::format("*.{}", name)};
  }
  if (kind == "zonesub") return std::vector<std::string>{};
  if (kind == "wildcard") return std::vector{std::string(name)};
  if (kind == "self") return std::vector<std::string>{"self"};
  if (kind == "selfsub") return std::vector<std::string>{"self", "*.self"};
  if (kind == "selfwild") return std::vector<std::string>{"*.self"};
  return std::nullopt;
}

/// Types that a rule without types does not have in BIND.
constexpr std::array kTypesLeftOut{dns::RRType::kNS, dns::RRType::kSOA, dns::RRType::kRRSIG,
                                   dns::RRType::kNSEC, dns::RRType::kNSEC3};

/// Reads the owner patterns of a rule; false if one is no name.
bool read_rule_names(const std::vector<std::string>& patterns, std::vector<dns::Name>& names) {
  for (const std::string& pattern : patterns) {
    auto name = parse_name(pattern);
    if (!name) return false;
    add_unique(names, std::move(*name));
  }
  return true;
}

/// Whether a rule of this kind has a name, which those about the signer may have without use.
bool has_rule_name(const NamedStatement& statement) {
  const std::string kind = statement.lower(2);
  if (kind == "zonesub") return false;
  if (!kind.starts_with("self")) return true;
  return statement.words.size() > 3 && !dns::rrtype_from_text(statement.words[3]) &&
         lower_case(statement.words[3]) != "any";
}

/// Reads the types of a rule; false if one is unknown.
bool read_rule_types(const NamedStatement& statement, std::size_t first,
                     std::vector<dns::RRType>& types, bool& all) {
  for (std::size_t i = first; i < statement.words.size(); ++i) {
    const std::string& word = statement.words[i];
    if (lower_case(word) == "any") {
      all = true;
      continue;
    }
    const auto type = dns::rrtype_from_text(word.substr(0, word.find('(')));
    if (!type || dns::is_meta_type(*type)) return false;
    add_unique(types, *type);
  }
  if (all) types.clear();
  return true;
}

}  // namespace

bool NamedLists::grant(const NamedStatement& statement, zone::Acl& acl) {
  const std::string_view verb = statement.word(0);
  const std::string_view identity = statement.word(1);
  const std::string kind = statement.lower(2);
  const auto patterns = owner_patterns(kind, statement.word(3));
  if ((verb != "grant" && verb != "deny") || !patterns) return false;
  zone::AclRule rule;
  rule.deny = verb == "deny";
  if (identity == "*")
    rule.address = match_any().rule.address;
  else if (rule.key = out_.find_key(identity); !rule.key)
    return false;
  if (identity == "*" && !kind.starts_with("self")) return false;  // any signer, not anybody
  if (!read_rule_names(*patterns, rule.names)) return false;
  if (kind == "wildcard" && !statement.word(3).starts_with("*.")) return false;
  bool all = false;
  const std::size_t first_type = has_rule_name(statement) ? 4 : 3;
  if (!read_rule_types(statement, first_type, rule.types, all)) return false;
  if (rule.types.empty() && !all && !rule.deny) {
    zone::AclRule left_out = rule;
    left_out.deny = true;
    left_out.types.assign(kTypesLeftOut.begin(), kTypesLeftOut.end());
    acl.push_back(std::move(left_out));
  }
  acl.push_back(std::move(rule));
  return true;
}

/// Programs of this host sign with a key from a file, and BIND believes it from the host alone.
zone::Acl NamedLists::policy_of_host(const NamedStatement& statement, std::string_view local_key) {
  zone::Acl acl;
  const std::string title = fmt::format("update-policy {}", statement.word(1));
  if (statement.lower(1) != "local" || !parse_name(local_key)) {
    report_.add(statement.at, title, "has no counterpart in allow-update");
    return acl;
  }
  for (const char* address : {"127.0.0.0/8", "::1"}) {
    zone::AclRule& rule = acl.emplace_back();
    rule.key = out_.session_key(local_key);
    rule.address = parse_match_prefix(address);
  }
  report_.note(statement.at, title,
               "the manager writes the key into keys[].session-file: nsupdate -k has its path");
  return acl;
}

zone::Acl NamedLists::policy_of(const NamedStatement& statement, std::string_view local_key) {
  zone::Acl acl;
  const NamedBlock* block = statement.block();
  if (block == nullptr) return policy_of_host(statement, local_key);
  for (const NamedStatement& rule : *block) {
    if (grant(rule, acl)) continue;
    const bool lacks_key = owner_patterns(rule.lower(2), rule.word(3)) &&
                           rule.word(1).find('*') == std::string_view::npos &&
                           !out_.find_key(rule.word(1));
    report_.add(rule.at,
                fmt::format("update-policy {} {} {}", rule.word(0), rule.word(1), rule.word(2)),
                lacks_key ? "no such key" : "has no counterpart in allow-update");
    if (rule.word(0) == "deny") break;  // later grants could allow what this rule denies
  }
  return acl;
}

}  // namespace pando::config
