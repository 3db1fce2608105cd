// FNV-1a, 64 bits: a short fingerprint of a text, the same on every machine. Not cryptographic.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace mllmsim {

inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

inline std::string hash_text(std::string_view text) { return fmt::format("{:016x}", fnv1a(text)); }

}  // namespace mllmsim
