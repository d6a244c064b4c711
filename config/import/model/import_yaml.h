#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/import/model/imported.h"

namespace pando::config {

/// A key's secret that belongs into a file of its own.
struct SecretFile {
  std::string name;    ///< beside the configuration
  std::string secret;  ///< base64; empty if the other server's was not usable
};

/// Name of the file for each key's secret, in the order of keys(). Names are safe and unique; that
/// of a key whose secret the manager makes is empty.
[[nodiscard]] std::vector<SecretFile> secret_files(const ImportedConfiguration& imported);

/// The configuration as YAML. Options that several zones share become a template. With
/// `with_secrets` the text has the secrets itself; keys without a usable one name a file even then.
[[nodiscard]] std::string write_yaml(const ImportedConfiguration& imported,
                                     std::string_view comment, bool with_secrets);

}  // namespace pando::config
