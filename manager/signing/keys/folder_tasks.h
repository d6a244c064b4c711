#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <memory>
#include <string>
#include <utility>

#include "manager/io/store_file.h"

namespace pando::manager {

/// Runs work on folders of keys in pool threads, one after the other, because each folder and the
/// list of signed zones have one writer. Lives on the commit thread.
class FolderTasks {
 public:
  /// References outlive the object; `pool` is joined before its destruction.
  FolderTasks(asio::io_context& io, asio::thread_pool& pool, Files& files)
      : io_(io), strand_(asio::make_strand(pool)), files_(files) {}

  /// Folder of the journal, beside which keys are; of later tasks.
  void set_journal(const std::string& journal) { journal_ = journal; }
  /// Those who take later results change nothing.
  void stop() noexcept { stopped_ = true; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

  /// Calls `work(Files&, const std::string& journal)` in a pool thread, then `then(result)` on the
  /// commit thread.
  template <class Work, class Then>
  void run(Work&& work, Then&& then) {
    asio::post(strand_, [this, journal = journal_, work = std::forward<Work>(work),
                         then = std::forward<Then>(then)]() mutable {
      asio::post(io_, [result = work(files_, journal), then = std::move(then)]() mutable {
        then(std::move(result));
      });
    });
  }

 private:
  asio::io_context& io_;
  asio::strand<asio::thread_pool::executor_type> strand_;
  Files& files_;
  std::string journal_;
  bool stopped_ = false;
};

}  // namespace pando::manager
