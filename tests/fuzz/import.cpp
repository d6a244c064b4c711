#include <cstdlib>

#include "config/import/import.h"
#include "config/load.h"

// A configuration of another server, the first octet chooses which. The importer either gives a
// one-line error, or a configuration that the loader accepts; never a crash.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pando::config;
  if (size == 0) return 0;
  const auto kind = static_cast<ImportKind>(data[0] % 6);
  const auto outcome =
      import_text(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), "/f.conf",
                  {.kind = kind, .with_secrets = true, .with_includes = false});
  if (!outcome) {
    const std::string& error = outcome.error().text;
    if (!error.starts_with("/f.conf:") || error.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const Omission& omission : outcome->omissions)
    if (to_text(omission).find('\n') != std::string::npos) std::abort();
  const auto loaded = load_text(outcome->yaml, "/f.yaml",
                                {.read_zone_lists = false, .read_key_files = false});
  if (!loaded.ok() || loaded.settings.zones.size() != outcome->zones) std::abort();
  return 0;
}
