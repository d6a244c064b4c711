#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/compare/transfer_client.h"
#include "ctl/commands/manager_commands.h"

/// `pandoctl compare`: the zones that are served, beside those of another server.
namespace pando::ctl {

struct ComparisonWords {
  std::vector<std::string> zones;  ///< empty: all that are served
  TransferServer server;
  std::uint32_t limit = 100;  ///< records shown of each zone
};

/// The differences between two servers in one zone. Rows are `ComparisonWords::limit` at most, the
/// counts are whole.
struct ComparedZone {
  std::string zone{};
  std::uint32_t serial = 0;
  std::uint32_t serial_there = 0;
  std::uint64_t records = 0;
  std::uint64_t missing_here = 0;
  std::uint64_t missing_there = 0;
  std::vector<ipc::RecordRow> only_there{};
  std::vector<ipc::RecordRow> only_here{};
  std::string error{};  ///< the zone could not be compared; empty otherwise

  [[nodiscard]] bool is_same() const noexcept {
    return error.empty() && serial == serial_there && missing_here == 0 && missing_there == 0;
  }
};

/// Puts a key of the configuration at `path` into `keyring` and gives it. kNotFound: it has none of
/// that name; kInvalid: the configuration or the name is wrong, or the key's secret is the
/// manager's.
Result<const dns::TsigKeyring::PreparedKey*> key_of_configuration(const std::string& path,
                                                                  const std::string& name,
                                                                  dns::TsigKeyring& keyring);

/// Reads each zone from the manager, transfers it from the other server, and prints what differs.
/// kDone: all are the same; kFailed: some are not, or could not be compared.
int compare(Session& session, const ComparisonWords& words);

/// Compares two finished sets of one zone.
[[nodiscard]] ComparedZone compare_sets(const RecordSet& here, const RecordSet& there,
                                        std::size_t limit);

}  // namespace pando::ctl
