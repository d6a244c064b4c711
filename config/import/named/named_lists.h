#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "config/import/model/match_list.h"
#include "config/import/named/named_syntax.h"

/// The named things of a named.conf to which zones refer: acl, key, lists of primaries.
namespace pando::config {

class NamedLists {
 public:
  NamedLists(ImportedConfiguration& out, ImportReport& report) : out_(out), report_(report) {}

  /// Takes an `acl`, `key`, `primaries` (or an older word) or `server` statement. False for others.
  bool take(const NamedStatement& statement);

  /// An address match list as rules.
  [[nodiscard]] zone::Acl acl_of(const NamedStatement& statement);
  /// Remotes of `primaries { … }` or `also-notify { … }`, without those that need TLS.
  [[nodiscard]] std::vector<std::string> remotes_of(const NamedStatement& statement);
  /// `update-policy { grant …; };`, or `update-policy local;` with the name of its key.
  [[nodiscard]] zone::Acl policy_of(const NamedStatement& statement, std::string_view local_key);

 private:
  MatchRules rules_of(const NamedBlock& block, int depth);
  MatchRules element_of(const NamedStatement& element, std::size_t at, int depth);
  MatchRules rules_of_acl(const NamedStatement& element, const std::string& name, int depth);
  void collect_remotes(const NamedStatement& statement, std::uint16_t default_port,
                       std::string_view default_key, int depth, std::vector<std::string>& names);
  void add_remote(const NamedStatement& entry, std::uint16_t port, std::string_view key,
                  std::vector<std::string>& names);
  void take_server(const NamedStatement& statement);
  /// The key of the `server` statement for the narrowest network with this address.
  [[nodiscard]] std::string_view server_key(const IpAddress& address) const;
  bool grant(const NamedStatement& statement, zone::Acl& acl);
  zone::Acl policy_of_host(const NamedStatement& statement, std::string_view local_key);

  ImportedConfiguration& out_;
  ImportReport& report_;
  std::map<std::string, NamedBlock, std::less<>> acls_;
  std::map<std::string, NamedStatement, std::less<>> remote_lists_;
  /// Keys of `server` statements, empty where they have none: by length, the longest first, and
  /// by network.
  std::map<std::uint8_t, std::map<std::string, std::string>, std::greater<>> servers_;
  std::set<std::string, std::less<>> expanding_;  ///< acls whose elements are being read
  std::size_t steps_ = 0;                         ///< elements of the list that is being read
};

}  // namespace pando::config
