# mllmsim_install(target): `cmake --install` gives a tree that can be moved as a whole.
#
#   bin/<target>                            finds the libraries by $ORIGIN/../lib/mllmsim
#   lib/mllmsim/lib{arrow,parquet}.so.*     only if they came from the wheel
#   share/mllmsim/scenarios/{models,clusters,software,runs,published,data}/*.toml, data/*.jsonl
#   share/mllmsim/cost_models/{calibrations,gpus}/*.json, estimate.json
function(mllmsim_install target)
  install(TARGETS ${target} RUNTIME DESTINATION bin)
  if(PyArrow_FOUND)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/mllmsim")
    install(FILES ${PyArrow_LIBRARIES} DESTINATION lib/mllmsim)
  endif()
  foreach(kind models clusters software runs published data)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/${kind} DESTINATION share/mllmsim/scenarios
            FILES_MATCHING PATTERN *.toml PATTERN *.jsonl)
  endforeach()
  foreach(kind calibrations gpus)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/cost_models/${kind} DESTINATION share/mllmsim/cost_models
            FILES_MATCHING PATTERN *.json)
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/cost_models/estimate.json DESTINATION share/mllmsim/cost_models)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/mllmsim)
endfunction()
