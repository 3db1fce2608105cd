#include "results/cli/calibration_plot.hpp"

#include "cost_models/fit/raw_data.hpp"
#include "results/charts/calibration_chart.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/errors.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

using Files = std::vector<std::string>;

fit::MeasuredNetwork network_of(const po::variables_map& values) {
  const fit::MeasuredNetwork network{values["gpus-per-node"].as<int>(),
                                     values["nics-per-node"].as<int>(),
                                     {values["nic-gb-per-s"].as<double>() * 1e9}};
  if (network.gpus_per_node < 1 || network.nics_per_node < 1 || !(network.nic_bandwidth.value > 0))
    throw UserError("command line", "", "expected GPUs, NICs and NIC bandwidth above 0");
  return network;
}

}  // namespace

void add_calibration_options(po::options_description& options) {
  options.add_options()("raw", po::value<Files>()->multitoken(),
                        "calibration: measurements to draw")(
      "gpus-per-node", po::value<int>()->default_value(8), "where they were measured")(
      "nics-per-node", po::value<int>()->default_value(8), "where they were measured")(
      "nic-gb-per-s", po::value<double>()->default_value(50), "where they were measured");
}

plot::Chart draw_calibration(const std::string& file, const po::variables_map& values) {
  if (!values.count("raw"))
    throw UserError("command line", "--raw", "a calibration does not keep its measurements");
  fit::RawData raw;
  for (const std::string& f : values["raw"].as<Files>()) raw.append(fit::read_raw(f));
  const auto found = scenarios::existing(file, scenarios::ShippedKind::calibration);
  return charts::calibration_chart(costs::read_calibration(found), raw, network_of(values));
}

}  // namespace mllmsim::cli
