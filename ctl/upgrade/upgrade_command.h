#pragma once

#include <chrono>
#include <string>

#include "ctl/view/output.h"

namespace pando::ctl {

struct UpgradeRequest {
  std::string config;         ///< path of the configuration
  std::string run_directory;  ///< of the running manager
  /// File for the log of a manager that this command starts; empty: that of the running one.
  std::string log;
  std::chrono::seconds timeout{};  ///< for the hand-over, for each start, and for each worker
};

/// Has the installed programs take over from the running ones, without a lost query: the manager,
/// then one worker after the other, then pando-http. Under systemd it does so by their units. Checks
/// afterwards which build runs where. Before the hand-over any failure leaves all as it was. Returns
/// kDone, kFailed or kUnreachable.
int upgrade(const UpgradeRequest& request, Output output);

}  // namespace pando::ctl
