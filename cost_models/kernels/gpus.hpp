// What data sheets say of GPUs. Efficiencies of a calibration are relative to these.
//
// A sheet is a file, DATA/cost_models/gpus/*.json (DATA: sim/base/data_directory.hpp), so that a
// new GPU needs no code. It is recognised by texts that its name as CUDA reports it contains
// (`reported_as`; spaces are dashes, case does not matter); of several sheets that fit, the one
// with the longest such text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/world/precision.hpp"

namespace mllmsim::costs {

struct Gpu {
  FlopsPerSecond peak{};  // dense bf16, or in what products_in says
  BytesPerSecond memory_bandwidth{};
  BytesPerSecond nvlink_bandwidth{};  // per direction
  int sms = 0;
  std::string from{};                     // in words: which data sheet, or how these were measured
  FlopsPerSecond peak_fp8{}, peak_fp4{};  // dense; 0: the GPU has no such products

  bool sheet_measured = false;  // while fitting: there is no data sheet, rates are measured ones
  // What products that are not quantised were measured in: 16 bits, or fp32.
  NumberFormat products_in = NumberFormat::bf16;

  // 0: a machine that has no such products, or on which they were not measured.
  FlopsPerSecond peak_of(NumberFormat format) const {
    if (!is_quantised(format)) {
      const bool same = (format == NumberFormat::fp32) == (products_in == NumberFormat::fp32);
      return same ? peak : FlopsPerSecond{};
    }
    return format == NumberFormat::nvfp4 ? peak_fp4 : peak_fp8;
  }
};

struct DataSheet {
  std::string name;
  std::vector<std::string> reported_as;
  Gpu gpu;
  Bytes memory{};
};

// Every shipped sheet, by file name. UserError with file and key for one that is wrong.
std::vector<DataSheet> data_sheets();

// By the name CUDA reports, or any text containing it.
std::optional<Gpu> find_gpu(std::string_view name);
// The same; throws UserError listing the known ones if there is none.
Gpu gpu_of(std::string_view name);

}  // namespace mllmsim::costs
