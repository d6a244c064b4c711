#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>

#include "manager/catalog/catalog_consumer.h"
#include "manager/catalog/catalog_producer.h"
#include "manager/start/run_time_zones.h"
#include "manager/start/server_parts.h"

namespace pando::manager {

/// The catalog zones of the server (RFC 9432): members of consumed catalogs become zones, and
/// produced catalogs are written. Both change the server's zones by RunTimeZones. Works by itself
/// from start() on, on the commit thread.
class Catalogs {
 public:
  /// References outlive the object.
  Catalogs(asio::io_context& io, asio::thread_pool& pool, ServerParts parts, RunTimeZones& zones);
  void start();
  /// For the end of the process.
  void stop();

  [[nodiscard]] const CatalogConsumer& consumer() const noexcept { return consumer_; }
  [[nodiscard]] const CatalogProducer& producer() const noexcept { return producer_; }

 private:
  CatalogConsumer consumer_;
  CatalogProducer producer_;
};

}  // namespace pando::manager
