#include "manager/io/frozen_zones.h"

#include <algorithm>
#include <asio/post.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "dns/folded_key.h"

namespace pando::manager {

namespace {

constexpr std::string_view kFrozenHead =
    "# Zones that pandoctl zone freeze froze, one a line. The manager writes this file.\n";

/// Room for the longest names, escaped.
constexpr std::uint64_t kMaxFrozenBytes = FrozenZones::kMaxZones * 1024;

std::string frozen_text(const std::set<std::string>& zones) {
  std::string text(kFrozenHead);
  for (const std::string& key : zones) {
    const std::string name = dns::to_text(dns::name_of_key(key));
    // A line with `#` in front would be a comment.
    text.append(name.front() == '#' ? "\\035" + name.substr(1) : name).append(1, '\n');
  }
  return text;
}

Status write_frozen(Files& files, const std::string& path, const std::set<std::string>& zones) {
  return write_file_atomically(files, path, bytes_of_text(frozen_text(zones)));
}

Result<std::string> read_frozen(Files& files, const std::string& path) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file && file.error().code == Errc::kNotFound) return std::string();
  if (!file) return pass(file);
  auto size = (*file)->size();
  if (!size) return pass(size);
  if (*size > kMaxFrozenBytes) return fail(Errc::kCorrupt, "{} has {} bytes", path, *size);
  Bytes bytes(*size);
  auto read = (*file)->read_at(0, bytes);
  if (!read) return pass(read);
  return std::string(reinterpret_cast<const char*>(bytes.data()), *read);
}

}  // namespace

/// Changes that are written together.
struct FrozenZones::Batch {
  std::vector<Change> changes;
  Zones zones;
  Status written{};
};

FrozenZones::FrozenZones(asio::io_context& io, asio::thread_pool& pool, Files& files,
                         const std::string& journal)
    : io_(io), pool_(pool), files_(files), path_(journal + "/frozen-zones.list") {}

Status FrozenZones::load() {
  auto text = read_frozen(files_, path_);
  if (!text) return pass(text);
  Zones zones;
  std::string_view rest = *text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    const auto name = dns::Name::from_text(line);
    if (!name) return fail(Errc::kCorrupt, "{}:{}: {}", path_, number, name.error().text);
    zones.insert(dns::folded_key(*name));
  }
  zones_ = std::move(zones);
  return {};
}

bool FrozenZones::contains(dns::NameView zone) const {
  return !zones_.empty() && zones_.contains(dns::folded_key(zone));
}

Status FrozenZones::check(const dns::Name& zone) const {
  if (!contains(zone)) return {};
  return fail(Errc::kDenied, "{} is frozen: pandoctl zone thaw", to_text(zone));
}

void FrozenZones::freeze(const dns::Name& zone, Done done) {
  submit({dns::folded_key(zone), true, std::move(done)});
}

void FrozenZones::thaw(const dns::Name& zone, Done done) {
  submit({dns::folded_key(zone), false, std::move(done)});
}

void FrozenZones::submit(Change change) {
  queue_.push_back(std::move(change));
  if (!writing_) write_next();
}

Status FrozenZones::apply(const Change& change, Zones& zones) {
  if (!change.freezes && zones.erase(change.key) == 0)
    return fail(Errc::kNotFound, "{} is not frozen", dns::to_text(dns::name_of_key(change.key)));
  if (change.freezes && zones.size() >= kMaxZones && !zones.contains(change.key))
    return fail(Errc::kFull, "{} zones are frozen already", zones.size());
  if (change.freezes) zones.insert(change.key);
  return {};
}

/// Changes that come while the file is written are written together after it.
void FrozenZones::write_next() {
  writing_ = !queue_.empty();
  if (!writing_) return;
  auto batch = std::make_shared<Batch>();
  batch->zones = zones_;
  for (Change& change : std::exchange(queue_, {})) {
    change.status = apply(change, batch->zones);
    batch->changes.push_back(std::move(change));
  }
  asio::post(pool_, [this, batch, differs = batch->zones != zones_] {
    if (differs) batch->written = write_frozen(files_, path_, batch->zones);
    asio::post(io_, [this, batch] {
      if (batch->written) zones_ = std::move(batch->zones);
      for (Change& change : batch->changes)
        change.done(change.status ? batch->written : change.status);
      write_next();
    });
  });
}

}  // namespace pando::manager
