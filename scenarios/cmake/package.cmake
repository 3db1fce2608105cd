# mllmsim::core: everything below results/ as one archive, for find_package(mllmsim) after `cmake --install`. It needs
# neither Arrow nor gnuplot. Headers are those that mllmsim.hpp reaches, in the folders they have here.
add_library(mllmsim_core STATIC
            $<TARGET_OBJECTS:mllmsim_base> $<TARGET_OBJECTS:mllmsim_sim> $<TARGET_OBJECTS:mllmsim_cost_models>
            $<TARGET_OBJECTS:mllmsim_strategies> $<TARGET_OBJECTS:mllmsim_scenarios>)
add_library(mllmsim::core ALIAS mllmsim_core)
set_target_properties(mllmsim_core PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME core OUTPUT_NAME mllmsim)
target_compile_features(mllmsim_core PUBLIC cxx_std_20)
target_link_libraries(mllmsim_core PUBLIC Boost::headers Boost::json fmt::fmt Threads::Threads
                      PRIVATE tomlplusplus::tomlplusplus)
target_include_directories(mllmsim_core INTERFACE
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/mllmsim>)

set(public_headers
    cost_models/calibration/calibrated_costs.hpp
    cost_models/kernels/kernel.hpp
    cost_models/kernels/kernel_costs.hpp
    scenarios/read/scenario.hpp
    sim/account/bubbles.hpp
    sim/account/critical_path.hpp
    sim/account/memory.hpp
    sim/base/data_directory.hpp
    sim/base/enum_names.hpp
    sim/base/errors.hpp
    sim/base/text.hpp
    sim/base/units.hpp
    sim/kernel/schedule.hpp
    sim/kernel/task_kinds.hpp
    sim/world/batch.hpp
    sim/world/cluster.hpp
    sim/world/image_rule.hpp
    sim/world/memory_settings.hpp
    sim/world/model.hpp
    sim/world/parallelism.hpp
    sim/world/precision.hpp
    sim/world/software.hpp
    strategies/data/batching.hpp
    strategies/data/samples.hpp
    strategies/job/chunk.hpp
    strategies/job/cost_context.hpp
    strategies/job/encoder_plan.hpp
    strategies/job/fact.hpp
    strategies/job/job.hpp
    strategies/job/options.hpp
    strategies/job/plan.hpp
    strategies/job/strategy.hpp
    strategies/registry/registry.hpp
    strategies/run/outcome.hpp
    strategies/run/simulate.hpp)
foreach(header ${public_headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mllmsim/${folder})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/scenarios/api/mllmsim.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mllmsim)

include(CMakePackageConfigHelpers)
install(TARGETS mllmsim_core EXPORT mllmsim ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/mllmsim)
install(EXPORT mllmsim NAMESPACE mllmsim:: FILE mllmsimTargets.cmake DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/mllmsimConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/mllmsimConfig.cmake INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mllmsimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mllmsimConfig.cmake ${PROJECT_BINARY_DIR}/mllmsimConfigVersion.cmake
        DESTINATION ${package})
