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

/// The image of a store that is served before the image's chunks are copied.
struct LentImage {
  std::unique_ptr<shm::ImageSource> source;
  std::unique_ptr<shm::Borrowing> borrowing;
  std::string path;          ///< of the file of chunks
  std::uint32_t chunks = 0;  ///< mapped chunks
  std::string index_path;    ///< of the image, even if the configuration names another by now
  std::string store_path;
};

/// Copies the image's chunks into a store that is served meanwhile, in a thread of its own, as fast
/// as the disk allows. All methods on the commit thread.
class ImageCopying {
 public:
  using Done = std::function<void(const Status&)>;

  /// `io` is the commit thread's; the store outlives the object.
  ImageCopying(asio::io_context& io, LentImage lent);
  /// Ends the copying. A store with an unfinished copy cannot be attached to later, however the
  /// process ends.
  ~ImageCopying();

  /// To be called once. `done` follows when the store has all chunks, or when the image is damaged
  /// (kCorrupt, kIo): then wrong data may have been served. Without memory for the store the
  /// copying waits for some.
  void start(Done done);
  /// The file of chunks for a reader of the store, while the store borrows. kNotFound, kIo.
  [[nodiscard]] Result<shm::ImageFile> lend() const { return lend_image(lent_.path, lent_.chunks); }
  [[nodiscard]] const LentImage& lent() const noexcept { return lent_; }
  /// Bytes that are not copied yet.
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
