#include "manager/support/load_progress.h"

namespace pando::manager {

namespace {
constexpr std::chrono::seconds kLogEvery{10};
}  // namespace

std::shared_ptr<LoadProgress> LoadsUnderWay::begin(const dns::Name& zone,
                                                   LoadProgress::Clock::time_point now) {
  auto load = std::make_shared<LoadProgress>();
  load->zone = zone;
  load->start = load->logged_at = now;
  std::erase_if(loads_, [](const auto& one) { return one.expired(); });
  loads_.push_back(load);
  return load;
}

std::shared_ptr<const LoadProgress> LoadsUnderWay::find(dns::NameView zone) const {
  for (const auto& one : loads_)
    if (auto load = one.lock(); load && load->zone.view() == zone) return load;
  return nullptr;
}

void LoadsUnderWay::give_up() {
  for (const auto& one : loads_)
    if (const auto load = one.lock()) load->give_up();
}

std::vector<std::shared_ptr<const LoadProgress>> LoadsUnderWay::due(
    LoadProgress::Clock::time_point now) {
  std::vector<std::shared_ptr<const LoadProgress>> found;
  for (const auto& one : loads_) {
    const auto load = one.lock();
    if (!load || now - load->logged_at < kLogEvery) continue;
    load->logged_at = now;
    found.push_back(load);
  }
  return found;
}

}  // namespace pando::manager
