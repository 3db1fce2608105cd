#include "cost_models/fit/calibrate_command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <filesystem>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/calibration/estimate.hpp"
#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/import_kineto.hpp"
#include "cost_models/fit/import_nccl.hpp"
#include "cost_models/fit/show.hpp"
#include "cost_models/kernels/names.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::fit {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kUsage =
    "usage: calibrate fit RAW... --out FILE [--gpu NAME] [--base FILE | --extend FILE]\n"
    "                 [--describe TEXT] [--gpus-per-node N] [--nics-per-node N] [--nic-gb-per-s "
    "GB]\n"
    "                     raw measurements (JSON lines, CSV or Parquet) to a calibration; parts\n"
    "                     that were not measured come from the base, or are estimates; --extend\n"
    "                     adds to a calibration of the same GPU, whose other parts stay. Ends "
    "with\n"
    "                     what it could not fit, and what to measure for that. --gpu: one of "
    "`list\n"
    "                     gpus`; any other name is a machine whose peak follows its products\n"
    "       calibrate import nccl|kineto|parquet FILE... [--out FILE] [--source TEXT]\n"
    "                 [--gpus-per-node N] [--op all_gather|reduce_scatter|all_reduce|sendrecv]\n"
    "                 [--profiler-us N]\n"
    "                     nccl-tests output, PyTorch traces or tables of aiconfigurator to raw\n"
    "                     measurements; --op for logs that do not say which operation they "
    "measured;\n"
    "                     traces have shapes (record_shapes=True), of a GPU or a CPU;\n"
    "                     --profiler-us: what the profiler adds for each operator of a CPU trace\n"
    "       calibrate show FILE|NAME [--raw RAW... --plot OUT.png]\n"
    "                     every part with its source in a word and in full, points and errors on\n"
    "                     held-out points, and a picture of measured against predicted times\n"
    "       calibrate scale FILE --gemm F [--attention F] [--memory_bound F] [--collectives F]\n"
    "                 [--point_to_point F] [--out FILE]\n"
    "                     multiply the times of parts, e.g. to match one measurement of your own;\n"
    "                     peaks rise with GEMMs that would be faster than the data sheet's\n"
    "       calibrate gaps RUN [--out SHAPES]\n"
    "                     kernels of a run that were never measured, those that matter most "
    "first\n";

constexpr std::array kParts{"gemm", "attention", "memory_bound", "collectives", "point_to_point"};

void emit(const po::variables_map& options, const std::string& text, std::ostream& out) {
  if (options.count("out") != 0) {
    write_file_atomically(options["out"].as<std::string>(), text);
  } else {
    out << text;
  }
}

po::variables_map parse(const std::vector<std::string>& args,
                        const po::options_description& named) {
  po::options_description all;
  all.add(named).add_options()("file", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("file", -1);
  po::variables_map values;
  const auto style =
      po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(args).options(all).positional(positional).style(style).run(),
            values);
  if (values.count("file") == 0) throw UserError("command line", "", "expected a file");
  return values;
}

// What measurements replace: another calibration, or estimates from the data sheet.
costs::Calibration base_of(const fit::RawData& raw, const po::variables_map& options) {
  if (options.count("extend") != 0) {
    costs::Calibration base = costs::read_calibration(options["extend"].as<std::string>());
    const costs::Gpu sheet = costs::gpu_of(raw.header.gpu);
    if (sheet.from != costs::gpu_of(base.header.gpu).from)
      throw UserError("command line", "--extend",
                      fmt::format("is of a {}, the measurements of a {}: use --base",
                                  base.header.gpu, raw.header.gpu));
    base.gpu.peak_fp8 = sheet.peak_fp8;
    base.gpu.peak_fp4 = sheet.peak_fp4;
    return base;
  }
  if (options.count("base") != 0)
    return costs::transferred(costs::read_calibration(options["base"].as<std::string>()),
                              raw.header.gpu);
  const auto gpu = costs::find_gpu(raw.header.gpu);
  return costs::estimated_calibration(raw.header.gpu, gpu ? *gpu : fit::measured_sheet(raw));
}

// Parts that rest on no measurement, or fit badly, and what to measure for them.
void advise(const costs::Calibration& c, const RawData& raw, std::ostream& err) {
  constexpr double kBadFit = 0.1;
  const auto part = [&](const std::string& name, const costs::Provenance& p, const char* measure) {
    if (p.source == costs::Source::estimate)
      fmt::print(err, "not fitted: {}, an estimate ({}); measure {}\n", name, p.from, measure);
    else if (p.median_error > kBadFit)
      fmt::print(err,
                 "fits badly: {}, off by {:.0f} % in the median of {} points; measure more {}\n",
                 name, 100 * p.median_error, p.points, measure);
  };
  part("gemm", c.gemm.all.provenance,
       "20 products or more of different shapes (mllmsim-calibrate, or a profile with shapes)");
  bool backward = false;
  for (const costs::AttentionKernel& k : c.attention.kernels) {
    backward |= k.backward;
    part(fmt::format("attention, dim {}{}{}", k.head_dim, k.causal ? ", causal" : "",
                     k.backward ? ", backward" : ""),
         k.provenance, "8 lengths and batches or more of each head dim, mask and pass");
  }
  if (!backward && c.attention.backward.source == costs::Source::estimate)
    fmt::print(err,
               "not fitted: attention backward, {:g} times the forward by estimate; measure 8 "
               "lengths and batches or more of it\n",
               c.attention.backward.value);
  for (const costs::MemoryOperation& o : c.memory_bound.operations)
    part(fmt::format("memory bound, {}", name_of(o.op)), o.provenance,
         "kernels of this kind of five sizes or more");
  part("collectives in a node", c.collectives.node_provenance,
       "all_gather, reduce_scatter and all_reduce (nccl-tests, or lines of your own)");
  for (const costs::CollectiveOp op :
       {costs::CollectiveOp::all_gather, costs::CollectiveOp::reduce_scatter,
        costs::CollectiveOp::all_reduce}) {
    const auto measured = [&](const Measurement<costs::Collective>& m) {
      return m.kernel.group.nodes == 1 && m.kernel.op == op;
    };
    if (c.collectives.node_provenance.source == costs::Source::interpolated &&
        std::count_if(raw.collectives.begin(), raw.collectives.end(), measured) <
            kFewestCollectives)
      fmt::print(err, "not fitted: {} in a node, as in the base; measure four sizes or more\n",
                 name_of(op));
  }
  part("point to point in a node", c.p2p.node_provenance, "messages of three sizes or more");
}

// With a data sheet: measurements that no such GPU gives.
void check_peaks(const RawData& raw, const costs::Calibration& base) {
  if (base.gpu.sheet_measured) return;
  for (const GemmMeasurement& g : raw.gemm) {
    const costs::Gemm& k = g.kernel;
    const FlopsPerSecond reached{k.flops().value / g.time.value}, peak = base.gpu.peak_of(k.format);
    if (peak.value == 0 || reached <= peak) continue;
    throw UserError(
        "", "gemm",
        fmt::format("a product of {} x {} x {} in {} was measured at {}, above the {} of {}'s data "
                    "sheet; is it this GPU, are times in microseconds? With a --gpu that no data "
                    "sheet knows, the peak follows the products",
                    k.m, k.n, k.k, name_of(k.format), costs::rate_text(reached),
                    costs::rate_text(peak), raw.header.gpu));
  }
}

void run_fit(const std::vector<std::string>& args, std::ostream& err) {
  po::options_description named;
  named.add_options()("out", po::value<std::string>()->required())("gpu", po::value<std::string>())(
      "base", po::value<std::string>())("extend", po::value<std::string>())(
      "describe", po::value<std::string>())("gpus-per-node", po::value<int>()->default_value(8))(
      "nics-per-node", po::value<int>()->default_value(8))("nic-gb-per-s",
                                                           po::value<double>()->default_value(50));
  po::variables_map options = parse(args, named);
  po::notify(options);
  if (options.count("base") != 0 && options.count("extend") != 0)
    throw UserError("command line", "--extend", "give either this or --base");
  fit::RawData raw;
  for (const std::string& file : options["file"].as<std::vector<std::string>>())
    raw.append(fit::read_raw(file));
  raw.drop_odd_fp32();
  if (options.count("gpu") != 0) raw.header.gpu = options["gpu"].as<std::string>();
  if (options.count("describe") != 0)
    raw.header.description = options["describe"].as<std::string>();
  if (raw.header.gpu.empty())
    throw UserError("command line", "gpu", "the measurements do not name their GPU: use --gpu");
  const fit::MeasuredNetwork network{options["gpus-per-node"].as<int>(),
                                     options["nics-per-node"].as<int>(),
                                     {options["nic-gb-per-s"].as<double>() * 1e9}};
  if (network.gpus_per_node < 1 || network.nics_per_node < 1 || !(network.nic_bandwidth.value > 0))
    throw UserError("command line", "", "expected GPUs, NICs and NIC bandwidth above 0");
  const costs::Calibration base = base_of(raw, options);
  check_peaks(raw, base);
  costs::Calibration fitted = fit::fit(raw, base, network);
  if (options.count("extend") != 0) {
    fitted.header = base.header;
    if (options.count("describe") != 0) fitted.header.description = raw.header.description;
  }
  write_file_atomically(options["out"].as<std::string>(), costs::to_json(fitted));
  show(fitted, err);
  advise(fitted, raw, err);
}

// Another name would be read as text.
const std::string& parquet_file(const std::string& file) {
  if (!file.ends_with(".parquet"))
    throw UserError("command line", "import parquet",
                    fmt::format("expected a name that ends in .parquet, found \"{}\"", file));
  return file;
}

void run_import(std::vector<std::string> args, std::ostream& out, std::ostream& err) {
  const std::string kind = args.empty() ? "" : args[0];
  if (kind != "nccl" && kind != "kineto" && kind != "parquet")
    throw UserError("command line", "import", "expected nccl, kineto or parquet");
  const bool nccl = kind == "nccl";
  args.erase(args.begin());
  po::options_description named;
  named.add_options()("out", po::value<std::string>())("source", po::value<std::string>())(
      "gpus-per-node", po::value<int>()->default_value(8))(
      "op", po::value<std::string>()->default_value(""))("profiler-us", po::value<double>());
  const po::variables_map options = parse(args, named);
  const int gpus = options["gpus-per-node"].as<int>();
  if (gpus < 1) throw UserError("command line", "gpus-per-node", "expected a number above 0");
  const auto& op = options["op"].as<std::string>();
  if (!op.empty() && !nccl) throw UserError("command line", "--op", "only nccl logs take it");
  fit::KinetoOptions traces{gpus, 0};
  if (options.count("profiler-us") != 0) {
    traces.profiler_us = options["profiler-us"].as<double>();
    if (kind != "kineto") throw UserError("command line", "--profiler-us", "only traces take it");
    if (!(traces.profiler_us >= 0) || traces.profiler_us > 1000)
      throw UserError("command line", "--profiler-us", "expected microseconds, 0 to 1000");
  }
  fit::RawData raw;
  for (const std::string& file : options["file"].as<std::vector<std::string>>())
    raw.append(nccl               ? fit::import_nccl(file, op)
               : kind == "kineto" ? fit::import_kineto(file, traces)
                                  : fit::read_raw(parquet_file(file)));
  if (kind == "kineto") raw.join_equal();  // steps of one machine, a trace each
  if (options.count("source") != 0) raw.set_source(options["source"].as<std::string>());
  emit(options, fit::to_json_lines(raw), out);
  fmt::print(err, "{} measurements\n", raw.size());
}

void run_show(const std::vector<std::string>& args, std::ostream& out) {
  const po::variables_map options = parse(args, {});
  for (const std::string& file : options["file"].as<std::vector<std::string>>())
    show(costs::read_calibration(file), out);
}

void run_scale(const std::vector<std::string>& args, std::ostream& out) {
  po::options_description named;
  named.add_options()("out", po::value<std::string>());
  for (const char* part : kParts) named.add_options()(part, po::value<double>());
  const po::variables_map options = parse(args, named);
  const auto& files = options["file"].as<std::vector<std::string>>();
  if (files.size() != 1) throw UserError("command line", "", "expected one calibration file");
  costs::Calibration calibration = costs::read_calibration(files.front());
  for (const char* part : kParts)
    if (options.count(part) != 0) costs::scale(calibration, part, options[part].as<double>());
  emit(options, costs::to_json(calibration), out);
}

}  // namespace

int run_calibrate(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const std::string command = args.empty() ? "" : args.front();
  const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  try {
    if (asks(command) || command == "help" || std::any_of(rest.begin(), rest.end(), asks))
      out << kUsage;
    else if (command == "fit")
      run_fit(rest, err);
    else if (command == "import")
      run_import(rest, out, err);
    else if (command == "show")
      run_show(rest, out);
    else if (command == "scale")
      run_scale(rest, out);
    else
      throw UserError("command line", "calibrate", "expected fit, import, show or scale");
    return 0;
  } catch (const UserError& e) {
    for (const Problem& p : e.problems()) fmt::print(err, "error: {}\n", p.text());
    return 2;
  } catch (const po::error& e) {
    fmt::print(err, "error: command line: {}\n{}", e.what(), kUsage);
    return 2;
  } catch (const EnvironmentError& e) {
    fmt::print(err, "error: {}\n", e.what());
    return 3;
  }
}

}  // namespace mllmsim::fit
