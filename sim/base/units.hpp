// Units as types, so that gigabytes per second and nanoseconds cannot mix in silence.
//
// Physical quantities (Seconds, Flops, rates) are doubles; counts that must add up exactly (Bytes,
// Time) are 64-bit integers. Time is simulated time in nanoseconds, both a point and a span. Cost
// models return Seconds; to_time() is the only place where they become Time.
//
// Absurd but readable input (a network of 1 bit per second) leads to times that 64 bits do not
// hold. Sums and products of whole quantities, and to_time(), refuse those with a UserError rather
// than wrap around; so what is simulated is right, or is not simulated.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace mllmsim {

[[noreturn]] void throw_too_large();  // the UserError

template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const {
    if constexpr (std::is_integral_v<Rep>) {
      Rep sum{};
      if (__builtin_add_overflow(value, o.value, &sum)) throw_too_large();
      return {sum};
    } else {
      return {value + o.value};
    }
  }
  constexpr Quantity operator-(Quantity o) const {
    if constexpr (std::is_integral_v<Rep>) {
      Rep difference{};
      if (__builtin_sub_overflow(value, o.value, &difference)) throw_too_large();
      return {difference};
    } else {
      return {value - o.value};
    }
  }
  constexpr Quantity operator-() const { return {-value}; }
  constexpr Quantity& operator+=(Quantity o) { return *this = *this + o; }
  constexpr Quantity& operator-=(Quantity o) { return *this = *this - o; }
  constexpr Quantity operator*(Rep factor) const {
    if constexpr (std::is_integral_v<Rep>) {
      Rep product{};
      if (__builtin_mul_overflow(value, factor, &product)) throw_too_large();
      return {product};
    } else {
      return {value * factor};
    }
  }
  constexpr Quantity operator/(Rep divisor) const { return {value / divisor}; }
  constexpr double operator/(Quantity o) const {
    return static_cast<double>(value) / static_cast<double>(o.value);
  }
  friend constexpr Quantity operator*(Rep factor, Quantity q) { return q * factor; }
};

using Seconds = Quantity<struct SecondsTag, double>;
using Flops = Quantity<struct FlopsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Time = Quantity<struct TimeTag, std::int64_t>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return {static_cast<double>(b.value) / r.value};
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return {f.value / r.value}; }

// To the nearest whole number; not a number is refused too.
inline std::int64_t rounded(double x) {
  constexpr double kLimit = 0x1p63;
  if (!(x > -kLimit && x < kLimit)) throw_too_large();
  return std::llround(x);
}

// The one rounding from cost models to simulated time.
inline Time to_time(Seconds s) { return {rounded(s.value * 1e9)}; }
constexpr Seconds to_seconds(Time t) { return {static_cast<double>(t.value) * 1e-9}; }

// Rounds to whole bytes; for shares such as "1/tp of the activations".
inline Bytes scaled(Bytes b, double factor) {
  return {rounded(static_cast<double>(b.value) * factor)};
}
inline Time scaled(Time t, double factor) { return to_time(to_seconds(t) * factor); }

// Indices into vectors; distinct types so that a task is not taken for a stream.
template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t value = kNone;

  constexpr auto operator<=>(const Id&) const = default;
  constexpr explicit operator bool() const { return value != kNone; }
};

}  // namespace mllmsim

template <class Tag>
struct std::hash<mllmsim::Id<Tag>> {
  std::size_t operator()(mllmsim::Id<Tag> id) const noexcept { return id.value; }
};
