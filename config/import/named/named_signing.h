#pragma once

#include <map>
#include <string>

#include "config/import/model/imported_policy.h"
#include "config/import/named/named_syntax.h"

namespace pando::config {

/// The statements by which BIND signs a zone, the nearest of each; null where there is none.
struct NamedSigningScope {
  const NamedStatement* policy = nullptr;     ///< `dnssec-policy`
  const NamedStatement* automatic = nullptr;  ///< `auto-dnssec`, up to BIND 9.18
  const NamedStatement* in_line = nullptr;    ///< `inline-signing`
  const NamedStatement* validity = nullptr;   ///< `sig-validity-interval`, up to BIND 9.18
  const NamedStatement* key_directory = nullptr;
  const NamedStatement* directory = nullptr;  ///< of the options
  /// The statement that has BIND sign the zone; empty without one.
  [[nodiscard]] std::string statement() const;
};

/// How BIND signs zones: by the `dnssec-policy NAME { … }` statements of a named.conf, or as older
/// versions did.
class NamedSigning {
 public:
  /// Takes a statement of the top that defines a policy. False for others.
  bool take(const NamedStatement& statement);
  /// Of a zone whose scope has a statement(). Keys are named by a pattern for the shell.
  [[nodiscard]] ForeignSigning of(const NamedSigningScope& scope, const dns::Name& zone) const;

 private:
  std::map<std::string, NamedStatement, std::less<>> policies_;
};

}  // namespace pando::config
