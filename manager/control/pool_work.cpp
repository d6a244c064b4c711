#include "manager/control/pool_work.h"

#include <asio/post.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace pando::manager {

void work_in_pool(asio::io_context& io, asio::thread_pool& pool, OpenedData& data, VersionWork work,
                  const CommandTable::Reply& reply) {
  const shm::VersionInfo version = data.store->current();
  const shm::Window window = data.store->window();
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(data.slots->pin_own(version.number));
  asio::post(pool, [&io, window, version, work = std::move(work), pin, reply]() mutable {
    auto result = work(zone::StoreView(window, version.root, version.number));
    asio::post(io, [pin = std::move(pin), reply, result = std::move(result)]() mutable {
      reply(std::move(result));
    });
  });
}

}  // namespace pando::manager
