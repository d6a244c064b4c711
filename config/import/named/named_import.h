#pragma once

#include <map>
#include <set>
#include <string>

#include "config/import/named/named_lists.h"
#include "config/import/named/named_signing.h"

namespace pando::config {

/// The server that reads a named.conf.
enum class NamedReader : std::uint8_t {
  kBind,
  kPdns,  ///< `bind-config`: zones may be `native` or without a type, which are primary ones
};

/// Imports a named.conf.
class NamedImport {
 public:
  NamedImport(ImportFiles& files, ImportedConfiguration& out, ImportReport& report,
              NamedReader reader = NamedReader::kBind)
      : files_(files), out_(out), report_(report), lists_(out, report), reader_(reader) {}

  /// An error is one line with the file and line of a fault in the syntax.
  Status run(const ImportText& text);

 private:
  /// Blocks in which a zone's settings are looked for, the nearest first.
  struct Scope {
    const NamedBlock* zone = nullptr;
    const NamedBlock* view = nullptr;
    const NamedBlock* options = nullptr;
    [[nodiscard]] const NamedStatement* find(std::string_view keyword) const noexcept;
  };

  void take_top(const NamedBlock& block);
  void take_options(const NamedBlock& block);
  void take_server_setting(const NamedStatement& statement);
  bool take_server_text(const NamedStatement& statement);
  void take_listen(const NamedStatement& statement, bool ipv6);
  void take_rate_limits(const NamedStatement& statement);
  void take_exempt(const NamedStatement& statement, const std::string& title);
  void take_dnstap(const NamedStatement& sink);
  void find_response_policies(const NamedBlock& block);
  void find_catalogs(const NamedBlock& block);
  void take_views(const NamedBlock& top, const NamedBlock* options);
  void take_view(const NamedStatement& view, const NamedBlock* options);
  void take_zone(const NamedStatement& statement, const NamedBlock* view,
                 const NamedBlock* options);
  /// `primary` or `secondary`, or another type as it is written in lower case; empty without one.
  [[nodiscard]] std::string type_of(const NamedStatement& statement) const;
  /// Why a zone of this type is not served; empty for primary and secondary ones.
  [[nodiscard]] std::string refusal_of(const NamedStatement& statement) const;
  /// The statements by which BIND signs a zone; none for another reader.
  [[nodiscard]] NamedSigningScope signing_in(const Scope& scope) const;
  void take_catalog(const NamedStatement& statement, const NamedStatement& entry,
                    const Scope& scope, dns::Name name);
  [[nodiscard]] std::vector<std::string> primaries_of(const Scope& scope);
  ImportedZone zone_of(const NamedStatement& statement, const Scope& scope, dns::Name name);
  void take_zone_access(const SourceLine& at, const Scope& scope, ZoneOptions& zone);
  void take_changes(const Scope& scope, ZoneOptions& zone);
  [[nodiscard]] static std::string session_key_name(const Scope& scope);
  void take_notify(const NamedStatement& statement, const Scope& scope, ZoneOptions& zone);
  void report_rest(const NamedStatement& statement);
  void report_of_view(const NamedStatement& statement, const std::string& title);
  /// Reports the statement with its reason, unless it is a switch that is off.
  void report_absent(const NamedStatement& statement, const std::string& title);

  ImportFiles& files_;
  ImportedConfiguration& out_;
  ImportReport& report_;
  NamedLists lists_;
  NamedSigning signing_;
  NamedReader reader_;
  std::set<std::string, std::less<>> policy_zones_;
  std::map<std::string, NamedStatement, std::less<>> catalogs_;  ///< that are consumed, by name
  std::uint16_t port_ = kDnsPort;
  std::vector<Endpoint> listen_v4_;
  std::vector<Endpoint> listen_v6_;
  bool listens_v4_ = false;  ///< some statement decided about the family
  bool listens_v6_ = false;
};

}  // namespace pando::config
