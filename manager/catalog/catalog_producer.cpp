#include "manager/catalog/catalog_producer.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr std::chrono::seconds kLookEvery{1};
/// After an error that may pass, as a full disk.
constexpr std::chrono::seconds kRetryProducingAfter{10};

bool produces_any(const config::Settings& settings) {
  return std::ranges::any_of(settings.catalogs,
                             [](const config::Catalog& catalog) { return catalog.produces(); });
}

}  // namespace

CatalogProducer::CatalogProducer(asio::io_context& io, asio::thread_pool& pool,
                                 const CurrentConfiguration& configuration, Calls calls)
    : io_(io), pool_(pool), configuration_(configuration), calls_(std::move(calls)), timer_(io) {}

void CatalogProducer::start() { look_later(); }

void CatalogProducer::stop() {
  stopped_ = true;
  timer_.cancel();
}

void CatalogProducer::look_later() {
  timer_.expires_after(kLookEvery);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error || stopped_) return;
    look();
    look_later();
  });
}

void CatalogProducer::look() {
  const RuntimePtr runtime = configuration_.runtime;
  if (busy_ || stopped_ || runtime == seen_ || !calls_.complete()) return;
  if (!problem_.empty() && std::chrono::steady_clock::now() < retry_at_) return;
  seen_ = runtime;
  if (!produces_any(runtime->settings)) return problem_.clear();
  busy_ = true;
  asio::post(pool_, [this, runtime] {
    auto catalogs = write_catalogs(runtime->settings);
    asio::post(io_, [this, runtime, catalogs = std::move(catalogs)]() mutable {
      written(runtime, std::move(catalogs));
    });
  });
}

void CatalogProducer::written(const RuntimePtr& runtime, WrittenCatalogs catalogs) {
  if (stopped_) return;
  for (dns::Name& zone : catalogs.changed)
    if (std::ranges::find(unread_, zone) == unread_.end()) unread_.push_back(std::move(zone));
  // A catalog that left the configuration meanwhile is no zone any more.
  std::erase_if(unread_, [&](const dns::Name& zone) { return !runtime->settings.produces(zone); });
  unwritten_ = std::move(catalogs.status);
  if (unread_.empty()) return finish({});
  calls_.reread(unread_, [this](const Status& status) { finish(status); });
}

void CatalogProducer::finish(const Status& status) {
  if (stopped_) return;
  if (!status) return fail_with(status.error());
  for (const dns::Name& zone : unread_) log::info("catalog_produced", "catalog", to_text(zone));
  unread_.clear();
  if (!unwritten_) return fail_with(unwritten_.error());
  busy_ = false;
  problem_.clear();
}

void CatalogProducer::fail_with(const Error& error) {
  busy_ = false;
  seen_ = nullptr;  // tried again
  retry_at_ = std::chrono::steady_clock::now() + kRetryProducingAfter;
  problem_ = fmt::format("catalog not written: {}", error.text);
  log::warning("catalog_not_produced", "reason", error.text);
}

}  // namespace pando::manager
