#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/words.h"
#include "config/settings/settings.h"

/// A configuration of another server, as far as it can be served here. All importers fill this
/// model; config/import/model/import_yaml writes it.
namespace pando::config {

inline constexpr std::uint16_t kDnsPort = 53;

/// The place of a statement in a file of the other server.
struct SourceLine {
  std::shared_ptr<const std::string> file;
  int line = 0;
};

/// The effect of an omission on the clients of the server.
enum class ImportEffect : std::uint8_t {
  kAnswers,  ///< some client gets another answer, or none
  kNone,     ///< clients get the same answers: the statement is about the host, or about speed
};

/// The reason of an omission. A reason of which nobody said otherwise changes answers, because a
/// report that cries too often does less harm than an outage.
struct ImportReason {
  std::string_view text;
  ImportEffect effect = ImportEffect::kAnswers;
};

/// A statement, or a part of one, that the result does not have.
struct Omission {
  std::string file;
  int line = 0;
  std::string statement;
  std::string reason;
  ImportEffect effect = ImportEffect::kAnswers;
};

/// `file:line: statement: reason`, without control characters.
[[nodiscard]] std::string to_text(const Omission& omission);

/// Everything that was not taken over, at most kMaxOmissions.
class ImportReport {
 public:
  /// A report of a hostile or generated file stays readable and small.
  static constexpr std::size_t kMaxOmissions = 1'000'000;

  /// A line that is there already is not added again: zones share lists, and their faults.
  void add(const SourceLine& at, std::string_view statement, const ImportReason& reason);
  void add(const SourceLine& at, std::string_view statement, std::string_view reason) {
    add(at, statement, ImportReason{reason});
  }
  /// For an omission that changes no answer.
  void note(const SourceLine& at, std::string_view statement, std::string_view reason) {
    add(at, statement, {reason, ImportEffect::kNone});
  }
  /// As add(), but only for the first statement with this reason.
  void add_once(const SourceLine& at, std::string_view statement, const ImportReason& reason);
  /// Omissions that change answers first, each kind in the order of finding.
  [[nodiscard]] std::vector<Omission> omissions() const;

 private:
  std::vector<Omission> omissions_;
  std::set<std::string, std::less<>> once_;
  std::unordered_set<std::string> lines_;
};

struct ImportedKey {
  SourceLine at;
  dns::Name name;
  dns::TsigAlgorithm algorithm = dns::TsigAlgorithm::kSha256;
  std::string secret;  ///< base64 as written; empty = not usable
  /// The manager makes the secret and keeps it in this file; empty = `secret` counts.
  std::string session_file{};
};

/// Options that zones made later can have: a pattern or template of the other server.
struct ImportedTemplate {
  std::string name;
  ZoneOptions options;
};

/// Names of templates, of which no two are the same.
class TemplateNames {
 public:
  /// The wanted name, or another one if that is taken or would need quotes; never "default", which
  /// would apply to every zone.
  std::string take(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> used_;
  std::size_t number_ = 1;
};

struct ImportedZone {
  dns::Name name;
  std::string file;   ///< absolute where the other server's folder is known; empty = none
  std::string group;  ///< pattern or template of the other server, which names ours
  ZoneOptions options;
  std::string key_import{};  ///< command that gives the manager the keys of a signed zone
};

/// The result of an import. Additions keep the invariants that the loader checks: names are unique,
/// and references exist.
class ImportedConfiguration {
 public:
  Server server;

  [[nodiscard]] const std::vector<ImportedKey>& keys() const noexcept { return keys_; }
  [[nodiscard]] const std::vector<Remote>& remotes() const noexcept { return remotes_; }
  [[nodiscard]] const std::vector<ImportedZone>& zones() const noexcept { return zones_; }
  [[nodiscard]] std::vector<ImportedZone>& zones() noexcept { return zones_; }
  [[nodiscard]] const std::vector<ImportedTemplate>& templates() const noexcept {
    return templates_;
  }
  [[nodiscard]] const std::vector<Catalog>& catalogs() const noexcept { return catalogs_; }
  [[nodiscard]] const std::vector<DnssecPolicy>& policies() const noexcept { return policies_; }
  [[nodiscard]] const TemplateNames& template_names() const noexcept { return template_names_; }

  /// Adds a key, or reports the reason against it.
  void add_key(ImportReport& report, const SourceLine& at, std::string_view name,
               std::string_view algorithm, std::string_view secret);
  /// The key that programs of this host find in a file, as BIND's `update-policy local` has it.
  dns::Name session_key(std::string_view name);
  /// The key of this name, if it was taken over.
  [[nodiscard]] std::optional<dns::Name> find_key(std::string_view name) const;
  /// Name of the remote with this address and key, which is added if it is new.
  std::string remote(const Endpoint& address, const std::optional<dns::Name>& key);
  /// Adds a zone, or reports the reason against it. `statement` is for the report.
  void add_zone(ImportReport& report, const SourceLine& at, std::string_view statement,
                ImportedZone zone);
  /// Adds a template; returns the name that it got.
  std::string add_template(std::string_view wanted, const ZoneOptions& options);
  /// Name of the policy that is like this one but for its name, which is added if it is new.
  std::string add_policy(DnssecPolicy wanted);
  /// Adds a catalog, or reports the reason against it. Its zone is no other zone.
  void add_catalog(ImportReport& report, const SourceLine& at, std::string_view statement,
                   Catalog catalog);
  /// Whether the zone is a catalog that is produced here, so that zones can be its members.
  [[nodiscard]] bool produces(const dns::Name& zone) const noexcept;

 private:
  struct NameHash {
    std::size_t operator()(const dns::Name& name) const noexcept { return dns::hash_name(name); }
  };
  std::vector<ImportedKey> keys_;
  std::unordered_set<dns::Name, NameHash> key_names_;
  std::vector<Remote> remotes_;
  std::unordered_map<std::string, std::size_t> remote_index_;
  std::vector<ImportedZone> zones_;
  std::unordered_set<dns::Name, NameHash> zone_names_;  ///< also those of catalogs
  std::vector<ImportedTemplate> templates_;
  TemplateNames template_names_;
  std::vector<Catalog> catalogs_;
  std::vector<DnssecPolicy> policies_;
  TemplateNames policy_names_;
};

/// Appends to a list that must not have anything twice.
template <class T>
void add_unique(std::vector<T>& list, std::type_identity_t<T> item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
}

/// The port that `text` names, or `otherwise`.
[[nodiscard]] std::uint16_t port_in(std::string_view text, std::uint16_t otherwise = kDnsPort);

/// Takes a setting of response rate limiting by BIND's name for it; false for others.
bool take_rate_limit(std::string_view name, std::string_view value, RateLimit& limit);

/// Takes the source address of transfers; false for a second one, because ours is one for all. `*`
/// and addresses of all zeros leave the choice to the host.
bool take_transfer_source(std::string_view address, Server& server);

/// Takes the identity that NSID and `id.server` tell, by a text, or by hexadecimal digits of one.
/// False for octets that are no text.
bool take_identity(std::string_view text, std::string& identity);
bool take_identity_digits(std::string_view digits, std::string& identity);

/// `file` below `folder`, unless it is absolute or the folder is unknown.
[[nodiscard]] std::string join_path(std::string_view folder, std::string_view file);

/// The reason why a catalog is left out whose members `server` signs.
[[nodiscard]] std::string signed_members_reason(std::string_view server, std::string_view how);

/// The reason why a zone is left out that `server` signs, as its statement `how` tells.
/// `obstacle` tells why it is not signed here instead.
[[nodiscard]] std::string signed_reason(
    std::string_view server, std::string_view how,
    std::string_view obstacle = "and its file has no signatures");

/// Reports the first file whose folder is not known.
void report_relative(ImportReport& report, const SourceLine& at, std::string_view file);

/// True for text that `server.identity` and `server.version` can have: visible ASCII and blanks.
[[nodiscard]] bool is_short_text(std::string_view text) noexcept;

}  // namespace pando::config
