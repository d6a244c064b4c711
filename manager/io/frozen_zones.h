#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "dns/name.h"
#include "manager/io/store_file.h"

namespace pando::manager {

/// Zones whose data stay as they are until an operator thaws them: neither updates nor transfers
/// change them. A file keeps the set over restarts, also of zones that left the configuration.
///
/// Lives on the commit thread; the file is written in a pool thread.
class FrozenZones {
 public:
  /// Operators freeze zones by hand. The whole set is written at each change.
  static constexpr std::size_t kMaxZones = 10'000;
  using Done = std::function<void(const Status&)>;

  /// References outlive the object; `pool` is joined before its end. `journal`: the folder of the
  /// file, `frozen-zones.list`.
  FrozenZones(asio::io_context& io, asio::thread_pool& pool, Files& files,
              const std::string& journal);
  /// Reads the file. No file: no zone is frozen. After an error no zone is frozen.
  Status load();
  /// Durable, then in force, then told. Freezing a frozen zone changes nothing. kFull: too many are
  /// frozen.
  void freeze(const dns::Name& zone, Done done);
  /// kNotFound: the zone is not frozen.
  void thaw(const dns::Name& zone, Done done);

  [[nodiscard]] bool contains(dns::NameView zone) const;
  /// kDenied: the zone is frozen.
  [[nodiscard]] Status check(const dns::Name& zone) const;
  [[nodiscard]] std::size_t size() const noexcept { return zones_.size(); }

 private:
  using Zones = std::set<std::string>;  // dns::folded_key()
  struct Change {
    std::string key;
    bool freezes = false;
    Done done;
    Status status{};
  };
  struct Batch;
  void submit(Change change);
  void write_next();
  static Status apply(const Change& change, Zones& zones);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Files& files_;
  std::string path_;
  Zones zones_;
  std::deque<Change> queue_;
  bool writing_ = false;
};

}  // namespace pando::manager
