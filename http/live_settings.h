#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "http/api/api_routes.h"
#include "http/serve/access.h"
#include "ipc/control_results.h"

namespace pando::http {

/// Settings by which requests are answered: clients, and parts of the configuration to which they
/// refer.
struct ServedSettings {
  Access access;
  ApiRoutes::Known known;
};

/// From what the manager answered; kInvalid: a newer manager, whose words are unknown.
Result<ServedSettings> served_settings(const ipc::HttpSettingsResult& settings);

/// The settings in force. The manager reads the configuration again at a reload, as pando-http may
/// have no right any more to do so. Without a manager the last settings stay. Any thread.
class LiveSettings {
 public:
  using Clock = std::chrono::steady_clock;
  /// Asks for the settings that are in force, unless they have this label.
  using Ask = std::function<Result<ipc::HttpSettingsResult>(const std::string& label)>;
  /// `needs_keys`: other hosts can reach an address, so each client needs a key.
  LiveSettings(ServedSettings at_start, bool needs_keys, Ask ask);

  /// As they are in force at some time after the call began. Blocks while the manager is asked.
  std::shared_ptr<const ServedSettings> now();
  /// As they were last; does not block.
  [[nodiscard]] std::shared_ptr<const ServedSettings> last() const;

  /// A manager that needs longer for a reply counts as hung, and gets no request for kPause.
  static constexpr std::chrono::milliseconds kSlow{200};
  static constexpr std::chrono::seconds kPause{5};

 private:
  void refresh();
  void set(ServedSettings settings);

  const bool needs_keys_;
  const Ask ask_;
  std::mutex asking_;  ///< of label_, asked_at_ and ask_again_at_
  std::string label_;
  Clock::time_point asked_at_{};
  Clock::time_point ask_again_at_{};
  mutable std::mutex reading_;  ///< of settings_
  std::shared_ptr<const ServedSettings> settings_;
};

}  // namespace pando::http
