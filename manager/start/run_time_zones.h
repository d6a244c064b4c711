#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "manager/start/added_zone_list.h"
#include "manager/start/reloader.h"

namespace pando::manager {

/// Adds, removes and changes zones while the server runs, and reads files of single zones again. A
/// change is durable in the list before it is published, and answered when its zones are configured
/// and their files were read. Changes that come meanwhile are made together.
///
/// Lives on the commit thread; lists and tables are worked out in a pool thread.
class RunTimeZones {
 public:
  using Done = std::function<void(Result<ipc::ReloadResult>)>;

  /// References outlive the object.
  RunTimeZones(asio::io_context& io, asio::thread_pool& pool,
               const CurrentConfiguration& configuration, Reloader& reloader);
  /// kFull: too many changes wait.
  void submit(RunTimeChange change, Done done);
  /// Whether a change that waits or is under way adds this zone with its content. Its file must
  /// not be touched then.
  [[nodiscard]] bool creates(const dns::Name& zone) const;
  /// Changes that added or removed zones for commands.
  [[nodiscard]] std::uint64_t commands() const noexcept { return commands_; }
  /// The process is to end: no change begins any more.
  void stop();

 private:
  struct Pending {
    RunTimeChange change;
    Done done;
    Status status{};
    std::vector<dns::Name> zones{};    ///< changed ones
    std::vector<dns::Name> created{};  ///< zones whose files were written for this change
  };
  struct Batch;
  using BatchPtr = std::shared_ptr<Batch>;
  void begin_next();
  void work_out(Batch& batch);
  [[nodiscard]] static Status find_files(const config::Settings& settings, Pending& pending);
  Status change_list(Batch& batch, const std::vector<Pending*>& changes);
  Status apply(Pending& pending, config::Settings& settings);
  static void remove_files(Pending& pending, const config::Settings& settings);
  void worked_out(const BatchPtr& batch);
  using Files = ZoneFileLoads::Counts;
  void take_back(const BatchPtr& batch, const Error& error);
  void set_back(const BatchPtr& batch, const Error& error);
  void finish(Batch& batch, const Result<ipc::ReloadResult>& result, const Files& files);
  [[nodiscard]] static ipc::ReloadResult own_result(const Pending& pending,
                                                    const ipc::ReloadResult& all,
                                                    const Files& files);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  const CurrentConfiguration& configuration_;
  Reloader& reloader_;
  AddedZoneList list_;  // of the thread that works out a batch
  asio::steady_timer timer_;
  std::deque<Pending> queue_;
  std::vector<dns::Name> creating_;  // by the changes under way
  std::uint64_t commands_ = 0;
  bool busy_ = false;
  bool stopping_ = false;
};

}  // namespace pando::manager
