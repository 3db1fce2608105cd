#include "sim/account/free_blocks.hpp"

#include <algorithm>

#include "sim/base/errors.hpp"

namespace mllmsim {

std::vector<FreeBlock> FreeBlocks::all() const {
  std::vector<FreeBlock> out;
  for (const Size& s : sizes_)
    for (std::size_t i = rows_[s.row].first; i < rows_[s.row].places.size(); ++i)
      out.push_back({s.size, rows_[s.row].places[i].address, rows_[s.row].places[i].block});
  return out;
}

FreeBlock FreeBlocks::largest() const {
  const Place& last = in(rows() - 1).places.back();
  return {sizes_.back().size, last.address, last.block};
}

bool FreeBlocks::has(std::size_t count, std::int64_t size) const {
  if (size_ < count) return false;
  for (std::size_t row = rows(); count > 0 && row-- > 0;) {
    if (sizes_[row].size < size) return false;
    count -= std::min(count, in(row).places.size() - in(row).first);
  }
  return count == 0;
}

std::size_t FreeBlocks::row_of(std::int64_t size) const {
  // By halves, without branches that nobody can foresee.
  const Size* first = sizes_.data();
  for (std::size_t left = sizes_.size(); left > 0;) {
    const std::size_t half = (left + 1) / 2;
    first += first[half - 1].size < size ? half : 0;
    left -= half;
  }
  return static_cast<std::size_t>(first - sizes_.data());
}

std::uint32_t FreeBlocks::find_row(std::int64_t size) {
  const std::size_t at = row_of(size);
  std::uint32_t& row = latest_[place_of(size)];
  if (at < sizes_.size() && sizes_[at].size == size) return row = sizes_[at].row;
  row = static_cast<std::uint32_t>(rows_.size());
  if (unused_.empty()) {
    rows_.emplace_back();
  } else {
    row = unused_.back();
    unused_.pop_back();
  }
  rows_[row].size = size;
  sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(at), {size, row});
  return row;
}

void FreeBlocks::insert(std::int64_t size, std::int64_t address, std::uint32_t block) {
  knows(block);
  Row& row = rows_[row_named(size)];
  auto at = row.places.end();
  const auto first = row.places.begin() + static_cast<std::ptrdiff_t>(row.first);
  if (at != first && (at - 1)->address > address)
    at = std::ranges::lower_bound(first, at, address, {}, &Place::address);
  row.places.emplace(at, address, block);
  ++size_;
}

void FreeBlocks::erase(const FreeBlock& f) {
  const std::size_t at = row_of(f.size);
  check(at < sizes_.size() && sizes_[at].size == f.size, "a free block is in its pool");
  Row& row = rows_[sizes_[at].row];
  const auto first = row.places.begin() + static_cast<std::ptrdiff_t>(row.first);
  const auto place =
      std::ranges::lower_bound(first, row.places.end(), f.address, {}, &Place::address);
  check(place != row.places.end() && place->block == f.block, "a free block is in its pool");
  row.places.erase(place);
  --size_;
  if (!empty(at)) return;
  drop_row(sizes_[at].row);
  sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(at));
}

void FreeBlocks::drop_row(std::uint32_t row) {
  rows_[row].places.clear();
  rows_[row].first = 0;
  rows_[row].size = -1;
  unused_.push_back(row);
}

void FreeBlocks::settle() {
  std::size_t kept = 0;
  for (const Size& s : sizes_) {
    Row& row = rows_[s.row];
    if (row.leaving > 0 || !row.coming.empty()) settle(s.row);
    if (row.first == row.places.size())
      drop_row(s.row);
    else
      sizes_[kept++] = s;
  }
  sizes_.resize(kept);
}

void FreeBlocks::settle(std::uint32_t number) {
  Row& row = rows_[number];
  std::vector<Place>& places = row.places;
  // To the front of the list, which runs may have emptied.
  auto out = places.begin(), next = places.begin() + static_cast<std::ptrdiff_t>(row.first);
  for (; row.leaving > 0; ++next) {
    *out = *next;
    char& leaves = leaving_[next->block];
    out += 1 - leaves;
    row.leaving -= static_cast<std::size_t>(leaves);
    leaves = false;
  }
  if (out != next) places.erase(std::move(next, places.end(), out), places.end());
  row.first = 0;

  std::vector<Place>& coming = row.coming;
  if (!std::ranges::is_sorted(coming, {}, &Place::address))
    std::ranges::sort(coming, {}, &Place::address);
  std::size_t kept = places.size(), add = coming.size();
  places.resize(kept + add);
  // From the back, as far as there is something to add.
  while (add > 0) {
    const bool old = kept > 0 && places[kept - 1].address > coming[add - 1].address;
    places[kept + add - 1] = old ? places[kept - 1] : coming[add - 1];
    old ? --kept : --add;
  }
  coming.clear();
}

}  // namespace mllmsim
