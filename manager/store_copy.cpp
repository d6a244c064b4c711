#include "manager/store_copy.h"

#include <asio/post.hpp>
#include <memory>

#include "manager/image.h"
#include "zone/draft.h"

namespace pando::manager {

void copy_store(shm::Store& store, shm::SlotTable& slots, asio::io_context& io,
                asio::thread_pool& pool, Files& files, std::string path,
                std::function<void(const Status&)> done) {
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots.pin_own(store.current().number));
  auto capture = std::make_shared<shm::ImageCapture>(store.capture());
  asio::post(pool, [=, &io, &files, window = store.window(), path = std::move(path),
                    done = std::move(done)]() mutable {
    Image image(files, {std::move(path), zone::layout_fingerprint(), {}});
    auto written = image.write(*capture, window, [](std::uint64_t) { return true; });
    const Status status = written ? Status() : Status(pass(written));
    asio::post(io, [pin = std::move(pin), status, done = std::move(done)] { done(status); });
  });
}

}  // namespace pando::manager
