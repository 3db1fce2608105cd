#include "cost_models/kernels/gpus.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "sim/base/data_directory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"

namespace mllmsim::costs {
namespace {

namespace fs = std::filesystem;

DataSheet read_sheet(const fs::path& file) {
  const boost::json::value document = parse_json(read_file(file, kLargeFile), file.string());
  JsonObject object(document, file.string());
  DataSheet sheet;
  sheet.name = object.text("name");
  sheet.reported_as = object.texts("reported_as");
  JsonObject peak = object.object("peak_tflops");  // dense, by precision
  sheet.gpu.peak = {peak.positive("bf16") * 1e12};
  if (peak.has("fp8")) sheet.gpu.peak_fp8 = {peak.positive("fp8") * 1e12};
  if (peak.has("fp4")) sheet.gpu.peak_fp4 = {peak.positive("fp4") * 1e12};
  peak.finish();
  sheet.gpu.memory_bandwidth = {object.positive("memory_gb_per_s") * 1e9};
  sheet.memory = {static_cast<std::int64_t>(object.positive("memory_gb") * 1e9)};
  sheet.gpu.nvlink_bandwidth = {object.positive("nvlink_gb_per_s") * 1e9};
  sheet.gpu.sms = static_cast<int>(object.positive("sms"));
  sheet.gpu.from = object.text("source");
  object.finish();
  return sheet;
}

std::string as_reported(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = c == ' ' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::vector<DataSheet> data_sheets() {
  std::vector<fs::path> files;
  std::error_code error;  // a missing folder holds no sheets
  for (const auto& entry : fs::directory_iterator(data_directory() / "cost_models/gpus", error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<DataSheet> out;
  for (const fs::path& file : files) out.push_back(read_sheet(file));
  return out;
}

std::optional<Gpu> find_gpu(std::string_view name) {
  const std::string wanted = as_reported(name);
  std::optional<Gpu> found;
  std::size_t longest = 0;
  for (const DataSheet& sheet : data_sheets())
    for (const std::string& text : sheet.reported_as)
      if (text.size() > longest && wanted.find(as_reported(text)) != std::string::npos) {
        longest = text.size();
        found = sheet.gpu;
      }
  return found;
}

Gpu gpu_of(std::string_view name) {
  if (auto gpu = find_gpu(name)) return *std::move(gpu);
  std::string known;
  for (const DataSheet& sheet : data_sheets())
    for (const std::string& text : sheet.reported_as) known += (known.empty() ? "" : ", ") + text;
  throw UserError("", "gpu", "no data sheet for \"" + std::string(name) + "\"; known: " + known);
}

}  // namespace mllmsim::costs
