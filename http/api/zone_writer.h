#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "http/api/new_zone.h"
#include "http/api/rrset_patch.h"
#include "ipc/control.h"
#include "ipc/control_results.h"

namespace pando::http {

/// The client for whom a change is made, for the zone's history.
struct ApiClient {
  std::string key{};  ///< name of its key
  std::string address{};
};

/// Has the manager change zones, over its control socket (docs/reference/control-protocol.md). One
/// call at a time: a zone has one transaction.
class ZoneWriter {
 public:
  /// `journal`: the manager's folder with the files that it makes of new zones' content.
  ZoneWriter(std::string run_directory, std::string journal)
      : run_directory_(std::move(run_directory)), journal_(std::move(journal)) {}

  /// Makes all changes as one version of the zone, or none. Durable and served when it returns. The
  /// serial moves; a SOA among the changes may move it further, and its serial is not needed.
  /// kExists: somebody else has a transaction. kIo: no manager, or no answer in time; the changes
  /// may have been made then. Else the manager's reason.
  [[nodiscard]] Result<ipc::CommittedZone> apply(const dns::Name& zone,
                                                 std::span<const RRsetChange> changes,
                                                 const ApiClient& client = {}) const;
  /// Adds the zone, which is served and durable when it returns. kExists: it is there already, or
  /// updates of an earlier zone of the name are kept. kInvalid: its content has a fault, or it
  /// cannot be added. kFull: too much for one request. Errors name lines of the client's text,
  /// if it gave one, in place of lines of the file that the manager makes of it.
  [[nodiscard]] Status create(const NewZone& zone) const;
  /// Gives a secondary zone that was added other primaries: names of remotes. kInvalid: the zone is
  /// another server's choice, or the configuration's.
  [[nodiscard]] Status set_primaries(const dns::Name& zone,
                                     const std::vector<std::string>& primaries) const;
  /// Gives a primary zone that was added the policy `default`, so that it is signed. kInvalid: the
  /// zone is the configuration's.
  [[nodiscard]] Status sign(const dns::Name& zone) const;
  /// Removes a zone that was added, with all that is kept of it.
  [[nodiscard]] Status remove(const dns::Name& zone) const;
  /// Notifies the zone's remotes (RFC 1996). A zone without remotes is no error.
  [[nodiscard]] Status notify(const dns::Name& zone) const;
  /// Has a secondary zone transferred whole. kInvalid: a primary zone.
  [[nodiscard]] Status retransfer(const dns::Name& zone) const;

  /// For a whole change, the wait for a disk included.
  static constexpr std::chrono::seconds kTimeout{30};

 private:
  /// Over a connection of its own.
  [[nodiscard]] Result<nlohmann::json> call(const ipc::ControlRequest& request) const;

  std::string run_directory_;
  std::string journal_;
};

}  // namespace pando::http
