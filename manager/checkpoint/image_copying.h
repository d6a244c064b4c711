#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "manager/checkpoint/image_lending.h"
#include "manager/support/background_threads.h"
#include "shm/borrowing.h"

namespace pando::manager {

/// What a store that is served from its image comes with.
struct LentImage {
  std::unique_ptr<shm::ImageSource> source;
  std::unique_ptr<shm::Borrowing> borrowing;
  std::string path;          ///< of the file of chunks
  std::uint32_t chunks = 0;  ///< that are mapped
  std::string index_path;    ///< of the image, whatever the configuration says by now
  std::string store_path;
};

/// Brings the image's chunks into a store that is served meanwhile, in a thread of its own, as fast
/// as the disk gives them. All methods on the commit thread.
class ImageCopying {
 public:
  using Done = std::function<void(const Status&)>;

  /// `io` is the commit thread's; the store outlives the object.
  ImageCopying(asio::io_context& io, LentImage lent);
  /// Ends it; the store cannot be attached to then, nor after any other end of the process.
  ~ImageCopying();

  /// Once; `done` when the store has all, or when the image has turned out to be damaged (kCorrupt,
  /// kIo): then what was served so far may have been wrong. Where there is no memory for the store
  /// it waits for some.
  void start(Done done);
  /// For a reader of the store, while it borrows. kNotFound, kIo.
  [[nodiscard]] Result<shm::ImageFile> lend() const { return lend_image(lent_.path, lent_.chunks); }
  [[nodiscard]] const LentImage& lent() const noexcept { return lent_; }
  /// Not copied yet.
  [[nodiscard]] std::uint64_t bytes_left() const noexcept;

 private:
  void run();
  void end(const Status& copied);

  asio::io_context& io_;
  LentImage lent_;
  Done done_;
  std::atomic<bool> ending_{false};
  BackgroundThreads thread_{1};
};

}  // namespace pando::manager
