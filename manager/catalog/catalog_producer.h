#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "manager/start/produced_catalogs.h"
#include "manager/start/server_parts.h"

namespace pando::manager {

/// Keeps the files of produced catalogs as the configuration and the list of added zones say: looks
/// once a second whether these have changed, and has the files that became others read again.
///
/// Lives on the commit thread; files are compared and written in a pool thread.
class CatalogProducer {
 public:
  struct Calls {
    using Done = std::function<void(const Status&)>;
    /// Reads the files of these zones again.
    std::function<void(std::vector<dns::Name>, Done)> reread;
    /// Whether the configuration in force has all its zones: a catalog without those of lists that
    /// are not read yet would take its consumers' zones away.
    std::function<bool()> complete;
  };

  /// References outlive the object.
  CatalogProducer(asio::io_context& io, asio::thread_pool& pool,
                  const CurrentConfiguration& configuration, Calls calls);
  void start();
  /// For the end of the process.
  void stop();
  /// Looks now; also called by a timer.
  void look();
  /// Why the catalogs are not as they should be; empty: they are.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  void look_later();
  void written(const RuntimePtr& runtime, WrittenCatalogs catalogs);
  void finish(const Status& status);
  void fail_with(const Error& error);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  const CurrentConfiguration& configuration_;
  Calls calls_;
  asio::steady_timer timer_;
  RuntimePtr seen_;                   // the configuration of the last check
  std::vector<dns::Name> unread_;     // catalogs whose new file was not read yet
  Status unwritten_;                  // why some file could not be written
  std::chrono::steady_clock::time_point retry_at_{};
  std::string problem_;
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace pando::manager
