#include "cost_models/kernels/gpus.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

struct Sheet {
  std::string_view name;
  Gpu gpu;
};

// Dense bf16 FLOP/s, memory byte/s, NVLink byte/s per direction, SMs. More specific names first.
constexpr std::array kSheets{
    Sheet{"A100-SXM4-40G", {{312e12}, {1555e9}, {300e9}, 108}},
    Sheet{"A100-SXM", {{312e12}, {2039e9}, {300e9}, 108}},
    Sheet{"A800-SXM", {{312e12}, {2039e9}, {200e9}, 108}},
    Sheet{"H800", {{989.4e12}, {3352e9}, {200e9}, 132}},
    Sheet{"H200", {{989.4e12}, {4800e9}, {450e9}, 132}},
    Sheet{"H100-SXM", {{989.4e12}, {3352e9}, {450e9}, 132}},
    Sheet{"H100-80GB-HBM3", {{989.4e12}, {3352e9}, {450e9}, 132}},
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = c == ' ' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::optional<Gpu> find_gpu(std::string_view name) {
  const std::string wanted = upper(name);
  for (const Sheet& sheet : kSheets)
    if (wanted.find(sheet.name) != std::string::npos) return sheet.gpu;
  return std::nullopt;
}

Gpu gpu_of(std::string_view name) {
  if (const auto gpu = find_gpu(name)) return *gpu;
  std::string known;
  for (const Sheet& sheet : kSheets) known += (known.empty() ? "" : ", ") + std::string(sheet.name);
  throw UserError("", "gpu", "no data sheet for \"" + std::string(name) + "\"; known: " + known);
}

}  // namespace mllmsim::costs
