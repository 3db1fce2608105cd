// Free blocks by size and address, smallest first: what a best fit looks through.
//
// What is free is of few sizes: layers are alike, and what is cut from equal blocks leaves equal
// rests. So blocks are in rows, one per size, each by address. A best fit is the first of the first
// row that is large enough; the rows of many that come or go together are passed once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mllmsim {

struct FreeBlock {
  FreeBlock() = default;
  FreeBlock(std::int64_t bytes, std::int64_t at, std::uint32_t number)
      : size(bytes), address(at), block(number) {}
  std::int64_t size = 0, address = 0;
  std::uint32_t block = UINT32_MAX;
  // Addresses differ. Written so that it takes no branch.
  bool operator<(const FreeBlock& other) const {
    return (size < other.size) | ((size == other.size) & (address < other.address));
  }
};

class FreeBlocks {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::vector<FreeBlock> all() const;
  FreeBlock largest() const;
  // At least so many blocks are as large.
  bool has(std::size_t count, std::int64_t size) const;

  // Those as large in order, as long as `visit` says so.
  template <class Visit>
  void from(std::int64_t size, Visit visit) const {
    for (std::size_t row = row_of(size); row < rows(); ++row)
      for (std::size_t i = in(row).first; i < in(row).places.size(); ++i)
        if (!visit(FreeBlock{sizes_[row].size, in(row).places[i].address, in(row).places[i].block}))
          return;
  }

  // Rows of sizes, the smallest first; those that a run emptied stay until settle().
  std::size_t rows() const { return sizes_.size(); }
  std::size_t row_of(std::int64_t size) const;  // the first of blocks as large
  bool empty(std::size_t row) const { return in(row).first == in(row).places.size(); }
  FreeBlock front(std::size_t row) const {
    const Place& place = in(row).places[in(row).first];
    return {sizes_[row].size, place.address, place.block};
  }
  void pop_front(std::size_t row) {
    ++rows_[sizes_[row].row].first;
    --size_;
  }

  void insert(std::int64_t size, std::int64_t address, std::uint32_t block);
  void erase(const FreeBlock& f);

  // Several at once, in any order: they have come and gone after settle().
  void comes(std::int64_t size, std::int64_t address, std::uint32_t block) {
    knows(block);
    rows_[row_named(size)].coming.emplace_back(address, block);
    ++size_;
  }
  void leaves(std::int64_t size, std::uint32_t block) {
    leaving_[block] = true;
    ++rows_[row_named(size)].leaving;
    --size_;
  }
  void settle();

 private:
  struct Place {
    Place() = default;
    Place(std::int64_t at, std::uint32_t of) : address(at), block(of) {}
    std::int64_t address = 0;
    std::uint32_t block = UINT32_MAX;
  };
  struct Row {
    std::int64_t size = -1;     // none: not used
    std::vector<Place> places;  // by address, from `first` on
    std::size_t first = 0;
    std::vector<Place> coming;
    std::size_t leaving = 0;
  };
  struct Size {
    std::int64_t size = 0;
    std::uint32_t row = 0;
  };
  void knows(std::uint32_t block) {
    if (leaving_.size() <= block) leaving_.resize(2 * std::size_t{block} + 1);
  }
  const Row& in(std::size_t row) const { return rows_[sizes_[row].row]; }
  // The row of just this size, new if there was none.
  std::uint32_t row_named(std::int64_t size) {
    const std::uint32_t known = latest_[place_of(size)];
    return known < rows_.size() && rows_[known].size == size ? known : find_row(size);
  }
  static std::size_t place_of(std::int64_t size) {
    return static_cast<std::uint64_t>(size) * 0x9E3779B97F4A7C15ULL >> 58;
  }
  std::uint32_t find_row(std::int64_t size);
  void settle(std::uint32_t row);
  void drop_row(std::uint32_t row);

  std::vector<Size> sizes_;  // smallest first
  std::vector<Row> rows_;
  std::vector<std::uint32_t> unused_;       // rows
  std::array<std::uint32_t, 64> latest_{};  // asked for, by place_of() a size
  std::size_t size_ = 0;
  std::vector<char> leaving_;  // by block
};

}  // namespace mllmsim
