# Arrow C++ installed on the system if there is one, else the pyarrow wheel.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # the tests link them too, through our static library
find_package(Arrow CONFIG QUIET)
find_package(Parquet CONFIG QUIET)
if(NOT (Arrow_FOUND AND Parquet_FOUND))
  list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
  find_package(PyArrow QUIET)
  if(NOT PyArrow_FOUND)
    message(FATAL_ERROR "Neither Arrow C++ (find_package) nor a pyarrow wheel in .venv was found. "
                        "Run ./setup.sh, which installs the wheel.")
  endif()
  message(STATUS "Arrow ${PyArrow_VERSION} from the wheel in ${PyArrow_DIR}")
endif()
